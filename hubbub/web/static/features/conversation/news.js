// What comes into the shown thread, told to screen readers: the log itself is quiet, since its
// elements come and go while one scrolls.
import { html } from "../../core/ui.js";
import { firstWords } from "../../core/messages.js";
import { t } from "../../texts.js";

export function News({ app, thread }) {
  const message = app.state.arrived.value;
  const here = message && message.thread_id === thread.id && message.sender_id !== app.state.me.value;
  return html`<div class="hidden-text" role="status">
    ${here && t.conversation.says(app.state.nameOf(message.sender_id), firstWords(message, 160))}
  </div>`;
}
