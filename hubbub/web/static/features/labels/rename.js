// A dialog for the title of a thread.
import { html, useState } from "../../core/ui.js";
import { FormDialog } from "../../parts/form-dialog.js";
import { words } from "./texts.js";

export function Rename({ app, store, thread, close }) {
  const [title, setTitle] = useState(() => app.state.labels.peek().get(thread)?.title ?? "");
  const save = async () => void (await store.write("set_thread_title", { thread, title: title.trim() }));
  return html`<${FormDialog} title=${words.dialog} label=${words.save} submit=${save} close=${close}>
    <label class="field">${words.name}
      <input name="title" maxlength="120" autocomplete="off" dir="auto" data-focus value=${title}
        onInput=${(event) => setTitle(event.target.value)} />
    </label>
    <p class="quiet small">${words.hint}</p>
  <//>`;
}
