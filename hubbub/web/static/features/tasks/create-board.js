// A board besides the one that each thread has of its own.
import { html, useState } from "../../core/ui.js";
import { Dialog } from "../../parts/dialog.js";
import { t } from "../../texts.js";
import { words } from "./texts.js";

export function CreateBoard({ app, thread, close }) {
  const [name, setName] = useState("");
  const [problem, setProblem] = useState(null);
  const submit = async (event) => {
    event.preventDefault();
    try {
      const made = await app.client.write("create_board", { thread, name: name.trim() });
      close();
      app.router.go("tasks", [thread, made.id]);
    } catch (error) {
      if (error.code) setProblem(error.message);
    }
  };
  return html`<${Dialog} title=${words.createBoard} close=${close}>
    <form class="body" onSubmit=${submit}>
      <label class="field">${words.boardName}
        <input name="name" maxlength="64" required autocomplete="off" data-focus value=${name}
          onInput=${(event) => setName(event.target.value)} /></label>
      ${problem && html`<p class="note danger" role="alert">${problem}</p>`}
      <div class="actions">
        <button type="button" onClick=${close}>${t.cancel}</button>
        <button type="submit" class="primary" disabled=${!name.trim()}>${words.add}</button>
      </div>
    </form>
  <//>`;
}
