// Asks before a message is deleted.
import { firstWords } from "../../core/messages.js";
import { html } from "../../core/ui.js";
import { FormDialog } from "../../parts/form-dialog.js";
import { words } from "./texts.js";

const SHOWN = 300;

export function RemoveDialog({ app, message, close }) {
  const remove = async () => {
    const done = await app.client.write("delete_message", { message_id: message.id });
    app.state.message(done.message);
    return () => app.say(words.removed);
  };
  return html`<${FormDialog} title=${words.removing} label=${words.removeNow} danger submit=${remove} close=${close}>
    <blockquote class="quoted" dir="auto">${firstWords(message, SHOWN)}</blockquote>
    <p>${words.removeText}</p>
  <//>`;
}
