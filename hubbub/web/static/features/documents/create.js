// A new document: what it is called, and whose it is.
import { html, useMemo, useState } from "../../core/ui.js";
import { FormDialog } from "../../parts/form-dialog.js";
import { ThreadChoice, threadsOf } from "../../parts/thread-choice.js";
import { words } from "./texts.js";

export function Create({ app, thread, close }) {
  const threads = useMemo(() => threadsOf(app, thread), [thread]);
  const [title, setTitle] = useState("");
  const [whose, setWhose] = useState(thread ?? threads[0]);
  const create = async () => {
    const made = await app.client.write("create_document", { title: title.trim(), text: "", thread: whose });
    return () => app.router.go("document", [made.id, "edit"]);
  };
  return html`<${FormDialog} title=${words.create} label=${words.add} ready=${title.trim()} submit=${create} close=${close}>
    <label class="field">${words.name}
      <input name="title" maxlength="200" autocomplete="off" required data-focus value=${title}
        onInput=${(event) => setTitle(event.target.value)} />
    </label>
    <${ThreadChoice} app=${app} label=${words.thread} threads=${threads} value=${whose} change=${setWhose} />
  <//>`;
}
