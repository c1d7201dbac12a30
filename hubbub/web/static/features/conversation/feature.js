// The conversation in the middle.
import { html, useEffect } from "../../core/ui.js";
import { titleOf } from "../../core/ids.js";
import { timeOf } from "../../core/time.js";
import { render } from "../../core/markdown.js";
import { t } from "../../texts.js";
import { Composer } from "../composer/composer.js";

export default function conversation(app) {
  app.add.views.add({ name: "thread", view: Conversation, title: ([id]) => titleOf(id, app.state.me.value) });
}

function Conversation({ app, args: [id] }) {
  const thread = app.state.thread(id);
  const title = titleOf(id, app.state.me.value);
  const head = thread.head.value;
  useEffect(() => {
    app.load(id, head - 49, head);
    app.readUpTo(id, head);
  }, [id, head]);
  thread.changed.value;
  const shown = [...thread.messages.values()].sort((a, b) => a.tseq - b.tseq);
  return html`
    <header class="title"><h1>${title}</h1></header>
    <div class="log" role="log" aria-label=${t.conversation.log(title)}>
      ${shown.map((message) => html`<${Message} key=${message.tseq} message=${message} />`)}
      ${thread.pending.value.map(
        (entry) => html`<div class="message" data-state=${entry.state} key=${entry.cid}>${entry.text}</div>`,
      )}
    </div>
    <${Composer} app=${app} thread=${thread} />
  `;
}

function Message({ message }) {
  const text = message.text_representation ?? (typeof message.content === "string" ? message.content : JSON.stringify(message.content));
  return html`<article class="message" data-message=${message.id} data-state="stored">
    <b>${message.sender_id}</b> <time datetime=${message.sent_at}>${timeOf(message.sent_at)}</time>
    <div class="text" dir="auto" dangerouslySetInnerHTML=${{ __html: render(text) }} />
  </article>`;
}
