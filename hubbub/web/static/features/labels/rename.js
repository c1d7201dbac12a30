// A dialog for the title of a thread.
import { html, useState } from "../../core/ui.js";
import { Dialog } from "../../parts/dialog.js";
import { t } from "../../texts.js";
import { words } from "./texts.js";

export function Rename({ app, store, thread, close }) {
  const [title, setTitle] = useState(() => app.state.labels.peek().get(thread)?.title ?? "");
  const [problem, setProblem] = useState(null);
  const save = async (event) => {
    event.preventDefault();
    try {
      await store.write("set_thread_title", { thread, title: title.trim() });
      close();
    } catch (error) {
      setProblem(error.message);
    }
  };
  return html`<${Dialog} title=${words.dialog} close=${close}>
    <form class="body" onSubmit=${save}>
      <label class="field">${words.name}
        <input name="title" maxlength="120" autocomplete="off" dir="auto" data-focus value=${title}
          onInput=${(event) => setTitle(event.target.value)} />
      </label>
      <p class="quiet small">${words.hint}</p>
      ${problem && html`<p class="note danger" role="alert">${problem}</p>`}
      <div class="actions">
        <button type="button" onClick=${close}>${t.cancel}</button>
        <button type="submit" class="primary">${words.save}</button>
      </div>
    </form>
  <//>`;
}
