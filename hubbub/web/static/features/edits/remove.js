// Whether a message shall be deleted.
import { firstWords } from "../../core/messages.js";
import { html, useState } from "../../core/ui.js";
import { Dialog } from "../../parts/dialog.js";
import { Icon } from "../../parts/icon.js";
import { words } from "./texts.js";

const SHOWN = 300;

export function RemoveDialog({ app, message, close }) {
  const [problem, setProblem] = useState(null);
  const [busy, setBusy] = useState(false);
  const remove = async (event) => {
    event.preventDefault();
    setBusy(true);
    try {
      const done = await app.client.write("delete_message", { message_id: message.id });
      app.state.message(done.message);
      close();
      app.say(words.removed);
    } catch (error) {
      if (error.code) setProblem(error.message);
      setBusy(false);
    }
  };
  return html`<${Dialog} title=${words.removing} close=${close}>
    <form class="body" onSubmit=${remove}>
      <blockquote class="quoted" dir="auto">${firstWords(message, SHOWN)}</blockquote>
      <p>${words.removeText}</p>
      ${problem && html`<p class="note danger" role="alert">${problem}</p>`}
      <div class="actions">
        <button type="button" onClick=${close}>${words.cancel}</button>
        <button type="submit" class="danger" data-focus disabled=${busy}>
          <${Icon} name="remove" size=${16} />${words.removeNow}</button>
      </div>
    </form>
  <//>`;
}
