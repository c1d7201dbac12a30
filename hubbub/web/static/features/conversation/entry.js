// Something that was said here and is not stored yet, or that the hub has refused.
import { html, useComputed } from "../../core/ui.js";
import { fullTime, timeOf } from "../../core/time.js";
import { Avatar } from "../../parts/avatar.js";
import { Icon } from "../../parts/icon.js";
import { Prose } from "../../parts/prose.js";
import { t } from "../../texts.js";

const WAITING = { refused: "held", waiting: "waiting", connecting: "waiting" }; // by how it stands with the hub
const ICONS = { sending: "clock", waiting: "clock", held: "warning" };

export function Entry({ app, entry, named }) {
  const status = useComputed(() => app.status.value.state).value;
  const state = entry.state === "sending" ? (WAITING[status] ?? "sending") : entry.state;
  const sender = entry.args.speak_as ?? app.state.me.value;
  const at = new Date(entry.at).toISOString();
  return html`
    <article class=${named ? "message named" : "message"} data-message=${entry.cid} data-state=${state}
      aria-busy=${entry.state === "sending"} aria-label=${t.conversation.states[state]}>
      ${named ? html`<${Avatar} app=${app} id=${sender} size=${2.25} />` : html`<span class="at beside" />`}
      <div class="content">
        ${named && html`<header>
          <span class="sender">${app.state.nameOf(sender)}</span>
          <time class="at" datetime=${at} title=${fullTime(at)}>${timeOf(at)}</time>
        </header>`}
        <${Prose} app=${app} text=${entry.text} />
        ${entry.state === "refused" && html`<${Refused} app=${app} entry=${entry} />`}
      </div>
      <div class="meta">
        ${ICONS[state] && html`<span class="delivery small" title=${t.conversation.states[state]}>
          <${Icon} name=${ICONS[state]} size=${14} /><span class=${state === "waiting" ? "" : "hidden-text"}>
            ${t.conversation.states[state]}</span></span>`}
      </div>
    </article>
  `;
}

function Refused({ app, entry }) {
  const edit = () => {
    app.outbox.drop(entry);
    app.compose.edit(entry);
  };
  return html`<div class="refused note danger" role="alert">
    <${Icon} name="warning" size=${16} />
    <span>${t.conversation.refused(entry.error)}</span>
    <span class="choices">
      <${Choice} title=${t.conversation.again} run=${() => app.outbox.again(entry)} />
      <${Choice} title=${t.conversation.edit} run=${edit} />
      <${Choice} title=${t.conversation.discard} run=${() => app.outbox.drop(entry)} />
    </span>
  </div>`;
}

function Choice({ title, run }) {
  return html`<button type="button" class="small" onClick=${run}>${title}</button>`;
}
