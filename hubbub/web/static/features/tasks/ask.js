// What there is to say when one finishes a task, gives it back, hands it on, cancels or reopens it.
import { readersOf } from "../../core/delivery.js";
import { visible } from "../../core/markdown.js";
import { html, useState } from "../../core/ui.js";
import { FormDialog } from "../../parts/form-dialog.js";
import { OPERATIONS } from "./rules.js";
import { words } from "./texts.js";

const LONGEST = { finish: 10_000 };

export function AskDialog({ app, task, deed, close }) {
  const { title, field, to, now } = words.asks[deed];
  const me = app.state.me.peek();
  const people = [me, ...readersOf(app.state, task.thread_id, me)].filter((id) => id !== task.owner);
  const [whom, setWhom] = useState(people[0] ?? "");
  const [text, setText] = useState("");
  const submit = async () => {
    const said = deed === "finish" ? { result: text.trim() } : { note: text.trim() };
    await app.client.write(OPERATIONS[deed], { task: task.id, ...said, ...(to && { to: whom }) });
  };
  return html`<${FormDialog} title=${title} label=${now} danger=${deed === "cancel"} submit=${submit} close=${close}>
    <p dir="auto"><b>${visible(task.title)}</b></p>
    ${to && html`<label class="field">${to}
      <select name="to" data-focus value=${whom} onChange=${(event) => setWhom(event.target.value)}>
        ${people.map((id) => html`<option key=${id} value=${id}>${id}</option>`)}</select></label>`}
    <label class="field">${field}
      <textarea name="said" rows="3" maxlength=${LONGEST[deed] ?? 500} dir="auto" data-focus=${to ? null : ""}
        value=${text} onInput=${(event) => setText(event.target.value)} />
      <small>${words.optional}</small></label>
  <//>`;
}
