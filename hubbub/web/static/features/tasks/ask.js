// What there is to say when one finishes a task, gives it back, hands it on, cancels or reopens it.
import { readersOf } from "../../core/delivery.js";
import { visible } from "../../core/markdown.js";
import { html, useState } from "../../core/ui.js";
import { Dialog } from "../../parts/dialog.js";
import { t } from "../../texts.js";
import { OPERATIONS } from "./rules.js";
import { words } from "./texts.js";

const LONGEST = { finish: 10_000 };

export function AskDialog({ app, task, deed, close }) {
  const { title, field, to, now } = words.asks[deed];
  const me = app.state.me.peek();
  const people = [me, ...readersOf(app.state, task.thread_id, me)].filter((id) => id !== task.owner);
  const [whom, setWhom] = useState(people[0] ?? "");
  const [text, setText] = useState("");
  const [problem, setProblem] = useState(null);
  const [busy, setBusy] = useState(false);
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    const said = deed === "finish" ? { result: text.trim() } : { note: text.trim() };
    try {
      await app.client.write(OPERATIONS[deed], { task: task.id, ...said, ...(to && { to: whom }) });
      close();
    } catch (error) {
      if (error.code) setProblem(error.message);
      setBusy(false);
    }
  };
  return html`<${Dialog} title=${title} close=${close}>
    <form class="body" onSubmit=${submit}>
      <p dir="auto"><b>${visible(task.title)}</b></p>
      ${to && html`<label class="field">${to}
        <select name="to" data-focus value=${whom} onChange=${(event) => setWhom(event.target.value)}>
          ${people.map((id) => html`<option key=${id} value=${id}>${id}</option>`)}</select></label>`}
      <label class="field">${field}
        <textarea name="said" rows="3" maxlength=${LONGEST[deed] ?? 500} dir="auto" data-focus=${to ? null : ""}
          value=${text} onInput=${(event) => setText(event.target.value)} />
        <small>${words.optional}</small></label>
      ${problem && html`<p class="note danger" role="alert">${problem}</p>`}
      <div class="actions">
        <button type="button" onClick=${close}>${t.cancel}</button>
        <button type="submit" class=${deed === "cancel" ? "danger" : "primary"} disabled=${busy}>${now}</button>
      </div>
    </form>
  <//>`;
}
