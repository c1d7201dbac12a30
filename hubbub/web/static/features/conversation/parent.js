// The message that a thread of replies is about, on top of it.
import { html } from "../../core/ui.js";
import { fullTime, timeOf } from "../../core/time.js";
import { Avatar } from "../../parts/avatar.js";
import { useMessage } from "../../parts/message-link.js";
import { t } from "../../texts.js";
import { Body } from "./body.js";

export function Parent({ app, thread }) {
  const id = `m${thread.repliesTo}`;
  const { message, problem } = useMessage(app, id);
  const up = app.state.threads.value.get(thread.parent);
  up?.changed.value;
  if (problem) return html`<p class="parent quiet">${problem}</p>`;
  if (!message) return html`<div class="parent" aria-hidden="true"></div>`;
  const now = up?.at(message.tseq) ?? message;
  return html`
    <section class="parent" aria-label=${t.conversation.parent} tabindex="0">
      <div class="message named">
        <${Avatar} app=${app} id=${message.sender_id} size=${2.25} />
        <div class="content">
          <header>
            <button type="button" class="sender" onClick=${() => app.open("participant", message.sender_id)}>
              ${app.state.nameOf(message.sender_id)}</button>
            <a class="at" title=${fullTime(message.sent_at)}
              href=${app.router.href("thread", [message.thread_id, id])}>
              <time datetime=${message.sent_at}>${timeOf(message.sent_at)}</time></a>
          </header>
          <${Body} app=${app} message=${now} />
        </div>
      </div>
    </section>
  `;
}
