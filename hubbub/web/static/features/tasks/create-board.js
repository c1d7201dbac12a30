// A board besides the one that each thread has of its own.
import { html, useState } from "../../core/ui.js";
import { FormDialog } from "../../parts/form-dialog.js";
import { words } from "./texts.js";

export function CreateBoard({ app, thread, close }) {
  const [name, setName] = useState("");
  const create = async () => {
    const made = await app.client.write("create_board", { thread, name: name.trim() });
    return () => app.router.go("tasks", [thread, made.id]);
  };
  return html`<${FormDialog} title=${words.createBoard} label=${words.add} ready=${name.trim()} submit=${create} close=${close}>
    <label class="field">${words.boardName}
      <input name="name" maxlength="64" required autocomplete="off" data-focus value=${name}
        onInput=${(event) => setName(event.target.value)} /></label>
  <//>`;
}
