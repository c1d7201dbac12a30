// A dialog that asks before a file is deleted.
import { visible } from "../../core/markdown.js";
import { html, useState } from "../../core/ui.js";
import { Dialog } from "../../parts/dialog.js";
import { t } from "../../texts.js";
import { words } from "./texts.js";

export function Remove({ app, file, close }) {
  const [problem, setProblem] = useState(null);
  const remove = async (event) => {
    event.preventDefault();
    try {
      await app.client.write("delete_file", { id: file.id });
      close();
      app.say(words.removed);
    } catch (error) {
      setProblem(error.message);
    }
  };
  return html`<${Dialog} title=${words.removeAsk(visible(file.name))} close=${close}>
    <form class="body" onSubmit=${remove}>
      <p>${words.removeText}</p>
      ${problem && html`<p class="note danger" role="alert">${problem}</p>`}
      <div class="actions">
        <button type="button" data-focus onClick=${close}>${t.cancel}</button>
        <button type="submit" class="danger">${words.remove}</button>
      </div>
    </form>
  <//>`;
}
