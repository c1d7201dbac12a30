// A sequence as an accessible table, and its rows as sentences.
import { firstWords } from "../../core/messages.js";
import { html } from "../../core/ui.js";
import { titleOf } from "../../core/ids.js";
import { Moment } from "../../parts/moment.js";
import { t } from "../../texts.js";

export function SequenceTable({ app, story, here }) {
  const { when, from, to, woke, text } = t.interaction.columns;
  return html`
    <table class="sequence-table">
      <thead>
        <tr><th>${when}</th><th>${from}</th><th>${to}</th><th>${woke}</th><th>${text}</th></tr>
      </thead>
      <tbody>
        ${story.rows.map(
          (row) => html`<tr key=${row.message.id}>
            <td><${Moment} at=${row.message.sent_at} /></td>
            <td>${row.from}</td>
            <td>${row.bus ? app.state.titleOf(row.message.thread_id) : names(row.to)}</td>
            <td>${names(row.to.filter(({ wakes }) => wakes))}</td>
            <td>
              ${row.message.closed
                ? html`<span class="quiet">${t.messageLink.unreadable}</span>`
                : html`<a href=${here("message", row.message.id)}>
                    ${firstWords(row.message, 80) || row.message.id}</a>`}
            </td>
          </tr>`,
        )}
      </tbody>
    </table>
  `;
}

/** "coordinator to researcher, wakes researcher: Please find out…" */
export function sentenceOf({ message, from, bus, to }) {
  const whom = bus ? titleOf(message.thread_id) : names(to);
  return t.interaction.sentence(from, whom, names(to.filter(({ wakes }) => wakes)), wordsOf(message, 120));
}

/** The beginning of a message, or a note that the reader cannot read it. */
export function wordsOf(message, most) {
  return message.closed ? t.messageLink.unreadable : firstWords(message, most);
}

const names = (list) => list.map(({ id }) => id).join(", ");
