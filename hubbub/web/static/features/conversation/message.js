// A message: sender, time, content and actions.
import { html } from "../../core/ui.js";
import { deliveryOf } from "../../core/delivery.js";
import { firstWords } from "../../core/messages.js";
import { fullTime, timeOf } from "../../core/time.js";
import { Avatar } from "../../parts/avatar.js";
import { Marks } from "../../parts/marks.js";
import { t } from "../../texts.js";
import { Actions } from "./actions.js";
import { Body } from "./body.js";

const LABEL_CHARACTERS = 120;

export function Message({ app, thread, log, message, named, isFocused, isMarked, isActive }) {
  const { id, sender_id: sender, sender_kind: kind } = message;
  const isMine = (message.sent_by ?? sender) === app.state.me.value;
  const follows = named ? null : thread.at(thread.said(message.tseq - 1, -1));
  const mentionsMe = message.mentions.includes(app.state.me.value);
  return html`
    <article class=${classes({ named, mentionsMe })} data-message=${id}
      data-state=${isMine ? deliveryOf(app.state, message).state : null} data-marked=${isMarked}
      tabindex=${isFocused ? 0 : -1} aria-posinset=${message.tseq} aria-setsize=${thread.head.value}
      aria-label=${labelOf(app, message)}
      onFocus=${(event) => isWholly(event) && log.setFocus(message.tseq)}>
      ${named
        ? html`<${Avatar} app=${app} id=${sender} size=${2.25} />`
        : html`<${At} app=${app} message=${message} hidden />`}
      <div class="content">
        ${named && html`<header>
          <button type="button" class="sender" title=${`@${sender}`} onClick=${() => app.open("participant", sender)}>
            ${app.state.nameOf(sender)}</button>
          ${kind !== "human" && html`<span class="kind">${t.conversation.kinds[kind]}</span>`}
          <${Marks} app=${app} slot="name" message=${message} thread=${thread} />
          <${At} app=${app} message=${message} />
        </header>`}
        <${Body} app=${app} message=${message} />
        <${Marks} app=${app} slot="below" message=${message} thread=${thread} follows=${follows} />
      </div>
      <div class="meta"><${Marks} app=${app} slot="meta" message=${message} thread=${thread} /></div>
      ${isActive && html`<${Actions} app=${app} message=${message} thread=${thread} />`}
    </article>
  `;
}

const labelOf = (app, message) =>
  t.conversation.message(
    app.state.nameOf(message.sender_id), t.conversation.kinds[message.sender_kind], timeOf(message.sent_at),
    firstWords(message, LABEL_CHARACTERS),
  );

/** The time, as a link to the message. `hidden` until hover. */
function At({ app, message, hidden = false }) {
  return html`<a class=${hidden ? "at beside" : "at"} tabindex=${hidden ? -1 : null}
    title=${fullTime(message.sent_at)} href=${app.router.href("thread", [message.thread_id, message.id])}>
    <time datetime=${message.sent_at}>${timeOf(message.sent_at)}</time>
  </a>`;
}

function classes({ named, mentionsMe }) {
  return ["message", named && "named", mentionsMe && "for-me"].filter(Boolean).join(" ");
}

/** The message itself is focused, not an element inside. */
export function isWholly(event) {
  return event.target === event.currentTarget;
}
