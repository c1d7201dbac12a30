// One position of the log: a message, a pending one, an agent's partial message, or a placeholder for
// one not loaded yet.
import { textOf } from "../../core/messages.js";
import { dayName, fullTime, timeOf } from "../../core/time.js";
import { html, useComputed, useMemo } from "../../core/ui.js";
import { Avatar } from "../../parts/avatar.js";
import { Icon } from "../../parts/icon.js";
import { Marks } from "../../parts/marks.js";
import { Prose } from "../../parts/prose.js";
import { t } from "../../texts.js";
import { Actions } from "./actions.js";
import { LiveDraft, Working } from "./live-draft.js";
import { isWholly, Message } from "./message.js";

/**
 * @param intro  The result of introOf for the row. `enter(tseq)` is called on hover.
 */
export function Row(props) {
  const { app, thread, log, item, message, entry, ghost, intro, enter } = props;
  const { isNew, isFocused, isMarked, isActive } = props;
  const tseq = item.index + 1;
  // The positions of rows change far more often than their content.
  const inside = useMemo(() => {
    if (entry) return html`<${Entry} app=${app} entry=${entry} named=${intro.named} />`;
    if (ghost?.text === null) return html`<${Working} app=${app} sender=${ghost.sender} thread=${thread} />`;
    if (ghost) return html`<${LiveDraft} app=${app} ghost=${ghost} named=${intro.named} />`;
    if (message?.amends) return null;
    if (!message) return html`<${Skeleton} n=${item.index} />`;
    const View = message.sender_kind === "system" ? Notice : Message;
    return html`<${View} app=${app} thread=${thread} log=${log} message=${message}
      named=${intro.named || isNew} isFocused=${isFocused} isMarked=${isMarked} isActive=${isActive} />`;
  }, [entry, ghost?.text, ghost?.sender, message, intro?.named, isNew, isFocused, isMarked, isActive]);
  const known = message || entry || ghost;
  const isSilent = message?.amends; // an amendment
  return html`
    <div class="place" data-index=${item.index} ref=${known ? log.virtual.measureElement : null}
      style=${{ transform: `translateY(${item.start}px)`, height: known ? "auto" : `${item.size}px` }}
      onPointerEnter=${() => enter(tseq)}>
      ${intro?.day && !isSilent && html`<div class="day"><span>${dayName(intro.day)}</span></div>`}
      ${isNew && html`<div class="new-line" role="separator" aria-label=${t.conversation.newHere}>
        <span>${t.conversation.newHere}</span></div>`}
      ${inside}
    </div>
  `;
}

/** A placeholder for a message, always the same for one position. */
function Skeleton({ n }) {
  return html`<div class="skeleton" aria-hidden="true" data-lines=${n % 3}><i /><b /><b /></div>`;
}

// A notice of the hub: a quiet line in the middle.

function Notice({ app, thread, log, message, isFocused, isMarked, isActive }) {
  const own = app.add.bodies.items.value.find(({ of }) => of(message));
  return html`
    <article class="message notice" data-message=${message.id} tabindex=${isFocused ? 0 : -1}
      aria-posinset=${message.tseq} aria-setsize=${thread.head.value} aria-label=${t.conversation.notice}
      data-marked=${isMarked} onFocus=${(event) => isWholly(event) && log.setFocus(message.tseq)}>
      ${own ? html`<${own.view} app=${app} message=${message} />`
        : html`<${Prose} app=${app} text=${textOf(message)} />`}
      <time datetime=${message.sent_at} title=${fullTime(message.sent_at)}>${timeOf(message.sent_at)}</time>
      <${Marks} app=${app} slot="below" message=${message} thread=${thread} />
      ${isActive && html`<${Actions} app=${app} message=${message} thread=${thread} />`}
    </article>
  `;
}

// A pending message, not stored yet or refused by the hub.

const WAITING = { refused: "held", waiting: "waiting", connecting: "waiting" }; // by the client's status
const ICONS = { sending: "clock", waiting: "clock", held: "warning" };

function Entry({ app, entry, named }) {
  const status = useComputed(() => app.status.value.state).value;
  const state = entry.state === "sending" ? (WAITING[status] ?? "sending") : entry.state;
  const sender = entry.args.on_behalf_of ?? app.state.me.value;
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
