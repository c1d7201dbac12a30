// What can be done with a task: the likeliest as a button, the others in a menu.
import { readersOf } from "../../core/delivery.js";
import { visible } from "../../core/markdown.js";
import { html, signal, useState } from "../../core/ui.js";
import { FormDialog } from "../../parts/form-dialog.js";
import { Menu } from "../../parts/menu.js";
import { useWork } from "../../parts/work.js";
import { TaskForm } from "./form.js";
import { deedsOf, OPERATIONS } from "./rules.js";
import { words } from "./texts.js";

/** {task, deed} while somebody is asked. It is not of the card: that may go while one writes. */
const asked = signal(null);

/** Do it, or ask what there is to say about it first. Rejects with a CallError. */
export async function begin(app, task, deed) {
  if (deed === "claim") await app.client.write("claim_task", { task: task.id });
  else asked.value = { task, deed };
}

export function Deeds({ app, task }) {
  const { busy, problem, run } = useWork();
  const may = (deed) => app.client.may(OPERATIONS[deed]);
  const [first, ...others] = deedsOf(task, app.state.me.value, app.state.owner.value).filter(may);
  const start = (deed) => run(() => begin(app, task, deed));
  if (!first) return null;
  const items = others.map((deed) => ({
    title: words.deeds[deed], danger: deed === "cancel", run: () => start(deed),
  }));
  return html`
    <span class="deeds">
      <button type="button" class="small" disabled=${busy} onClick=${() => start(first)}>${words.deeds[first]}</button>
      ${items.length > 0 && html`<${Menu} label=${words.more(visible(task.title))} items=${items}
        className="icon small" />`}
    </span>
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
  `;
}

/** Over the page, while somebody is asked. */
export function Asked({ app }) {
  const close = () => (asked.value = null);
  if (!asked.value) return null;
  const { task, deed } = asked.value;
  return deed === "edit"
    ? html`<${TaskForm} key=${task.id} app=${app} thread=${task.thread_id} task=${task} close=${close} />`
    : html`<${AskDialog} key=${task.id} app=${app} task=${task} deed=${deed} close=${close} />`;
}

// What there is to say when one finishes a task, gives it back, hands it on, cancels or reopens it.

const LONGEST = { finish: 10_000 };

function AskDialog({ app, task, deed, close }) {
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
