// Actions on a task: the likeliest as a button, the others in a menu.
import { readersOf } from "../../core/delivery.js";
import { visible } from "../../core/markdown.js";
import { html, signal, useState } from "../../core/ui.js";
import { FormDialog } from "../../parts/form-dialog.js";
import { Menu } from "../../parts/menu.js";
import { usePending } from "../../parts/pending.js";
import { TaskForm } from "./form.js";
import { actionsOf, OPERATIONS } from "./rules.js";
import { words } from "./texts.js";

/** {task, action} while its dialog is open. Kept outside the card, which can disappear meanwhile. */
const asked = signal(null);

/** Run the action, after its dialog if it has one. Rejects with a CallError. */
export async function begin(app, task, action) {
  if (action === "claim") await app.client.write("claim_task", { task: task.id });
  else asked.value = { task, action };
}

export function Actions({ app, task }) {
  const { busy, problem, run } = usePending();
  const may = (action) => app.client.may(OPERATIONS[action]);
  const [first, ...others] = actionsOf(task, app.state.me.value, app.state.owner.value).filter(may);
  const start = (action) => run(() => begin(app, task, action));
  if (!first) return null;
  const items = others.map((action) => ({
    title: words.actions[action], danger: action === "cancel", run: () => start(action),
  }));
  return html`
    <span class="task-actions">
      <button type="button" class="small" disabled=${busy} onClick=${() => start(first)}>${words.actions[first]}</button>
      ${items.length > 0 && html`<${Menu} label=${words.more(visible(task.title))} items=${items}
        className="icon small" />`}
    </span>
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
  `;
}

/** The open dialog, over the page. */
export function Asked({ app }) {
  const close = () => (asked.value = null);
  if (!asked.value) return null;
  const { task, action } = asked.value;
  return action === "edit"
    ? html`<${TaskForm} key=${task.id} app=${app} thread=${task.thread_id} task=${task} close=${close} />`
    : html`<${AskDialog} key=${task.id} app=${app} task=${task} action=${action} close=${close} />`;
}

// The dialog for finishing, returning, reassigning, cancelling or reopening a task.

const LONGEST = { finish: 10_000 };

function AskDialog({ app, task, action, close }) {
  const { title, field, to, now } = words.asks[action];
  const me = app.state.me.peek();
  const people = [me, ...readersOf(app.state, task.thread_id, me)].filter((id) => id !== task.owner);
  const [whom, setWhom] = useState(people[0] ?? "");
  const [text, setText] = useState("");
  const submit = async () => {
    const said = action === "finish" ? { result: text.trim() } : { note: text.trim() };
    await app.client.write(OPERATIONS[action], { task: task.id, ...said, ...(to && { to: whom }) });
  };
  return html`<${FormDialog} title=${title} label=${now} danger=${action === "cancel"} submit=${submit} close=${close}>
    <p dir="auto"><b>${visible(task.title)}</b></p>
    ${to && html`<label class="field">${to}
      <select name="to" data-focus value=${whom} onChange=${(event) => setWhom(event.target.value)}>
        ${people.map((id) => html`<option key=${id} value=${id}>${id}</option>`)}</select></label>`}
    <label class="field">${field}
      <textarea name="said" rows="3" maxlength=${LONGEST[action] ?? 500} dir="auto" data-focus=${to ? null : ""}
        value=${text} onInput=${(event) => setText(event.target.value)} />
      <small>${words.optional}</small></label>
  <//>`;
}
