// A new document: what it is called, and whose it is.
import { html, useMemo, useState } from "../../core/ui.js";
import { Dialog } from "../../parts/dialog.js";
import { ThreadChoice, threadsOf } from "../../parts/thread-choice.js";
import { t } from "../../texts.js";
import { words } from "./texts.js";

export function Create({ app, thread, close }) {
  const threads = useMemo(() => threadsOf(app, thread), [thread]);
  const [title, setTitle] = useState("");
  const [whose, setWhose] = useState(thread ?? threads[0]);
  const [problem, setProblem] = useState(null);
  const [busy, setBusy] = useState(false);
  const create = async (event) => {
    event.preventDefault();
    setBusy(true);
    try {
      const made = await app.client.write("create_document", { title: title.trim(), text: "", thread: whose });
      close();
      app.router.go("document", [made.id, "edit"]);
    } catch (error) {
      setProblem(error.message);
      setBusy(false);
    }
  };
  return html`<${Dialog} title=${words.create} close=${close}>
    <form class="body" onSubmit=${create}>
      <label class="field">${words.name}
        <input name="title" maxlength="200" autocomplete="off" required data-focus value=${title}
          onInput=${(event) => setTitle(event.target.value)} />
      </label>
      <${ThreadChoice} app=${app} label=${words.thread} threads=${threads} value=${whose} change=${setWhose} />
      ${problem && html`<p class="note danger" role="alert">${problem}</p>`}
      <div class="actions">
        <button type="button" onClick=${close}>${t.cancel}</button>
        <button type="submit" class="primary" disabled=${busy || !title.trim()}>${words.add}</button>
      </div>
    </form>
  <//>`;
}
