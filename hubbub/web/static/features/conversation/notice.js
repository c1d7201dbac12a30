// What the hub has to say: a quiet line in the middle.
import { html } from "../../core/ui.js";
import { fullTime, timeOf } from "../../core/time.js";
import { textOf } from "../../core/messages.js";
import { Prose } from "../../parts/prose.js";
import { Marks } from "../../parts/marks.js";
import { t } from "../../texts.js";
import { Actions } from "./actions.js";
import { isWholly } from "./message.js";

export function Notice({ app, thread, log, message, isFocused, isMarked, isActive }) {
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
