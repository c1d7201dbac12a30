// The form of a task, new or existing.
import { readersOf } from "../../core/delivery.js";
import { html, useEffect, useState } from "../../core/ui.js";
import { FormDialog } from "../../parts/form-dialog.js";
import { usePending } from "../../parts/pending.js";
import { t } from "../../texts.js";
import { words } from "./texts.js";

const names = words.fields;
const NEW = { title: "", description: "", owner: "", due: "", priority: "normal", labels: "", depends: "" };

/** @param about  {thread} or {board}, of a new task; `task`: the one that is changed. */
export function TaskForm({ app, thread, about = null, task = null, close }) {
  const [draft, setDraft] = useState(task ? null : NEW);
  const { problem, run } = usePending();
  useEffect(() => {
    if (task) run(async () => setDraft(draftOf(await app.client.call("read_task", { task: task.id, limit: 1 }))));
  }, [task?.id]);
  const change = (name) => (event) => setDraft({ ...draft, [name]: event.target.value });
  const submit = async () => {
    if (task) await app.client.write("update_task", { task: task.id, ...changesOf(draft) });
    else await app.client.write("create_task", { ...about, ...newOf(draft) });
  };
  return html`<${FormDialog} title=${task ? words.one : words.create} label=${task ? words.save : words.add}
    ready=${draft?.title.trim()} submit=${submit} close=${close}>
    ${draft && html`<${Fields} app=${app} thread=${thread} draft=${draft} change=${change} isNew=${!task} />`}
    ${!draft && !problem && html`<p class="quiet" role="status">${t.loading}</p>`}
    ${problem && html`<p class="note danger" role="alert">${problem}</p>`}
  <//>`;
}

function Fields({ app, thread, draft, change, isNew }) {
  const me = app.state.me.peek();
  const people = [me, ...readersOf(app.state, thread, me)];
  const select = (name, choices) => html`<label class="field">${names[name]}
    <select name=${name} value=${draft[name]} onChange=${change(name)}>
      ${choices.map(([value, title]) => html`<option key=${value} value=${value}>${title}</option>`)}</select></label>`;
  return html`
    <label class="field">${names.title}
      <input name="title" maxlength="200" required autocomplete="off" data-focus value=${draft.title}
        onInput=${change("title")} /></label>
    <label class="field">${names.description}
      <textarea name="description" rows="4" maxlength="10000" dir="auto" value=${draft.description}
        onInput=${change("description")} /><small>${names.descriptionHint}</small></label>
    <div class="pair">
      ${isNew && select("owner", [["", words.nobody], ...people.map((id) => [id, id])])}
      ${select("priority", Object.entries(words.priorities))}
      <label class="field">${names.due}
        <input name="due" type="datetime-local" value=${draft.due} onInput=${change("due")} /></label>
    </div>
    <label class="field">${names.labels}
      <input name="labels" autocomplete="off" value=${draft.labels} onInput=${change("labels")} />
      <small>${words.labelsHint}</small></label>
    <label class="field">${names.depends}
      <input name="depends" autocomplete="off" value=${draft.depends} onInput=${change("depends")} />
      <small>${names.dependsHint}</small></label>
  `;
}

const parted = (text) => text.split(",").map((each) => each.trim()).filter(Boolean);

function draftOf({ task, description }) {
  const { title, due, priority, labels, depends_on: depends, version, owner } = task;
  return {
    title, description, priority, version, owner: owner ?? "", due: due ? localTime(due) : "", before: due,
    labels: labels.join(", "), depends: depends.join(", "),
  };
}

function newOf({ title, description, owner, due, priority, labels, depends }) {
  return {
    title: title.trim(), description, priority, labels: parted(labels), depends_on: parted(depends),
    ...(owner && { owner }), ...(due && { due: new Date(due).toISOString() }),
  };
}

/** The due time only if it changed: one in the past would be refused. */
function changesOf({ title, description, due, before, priority, labels, depends, version }) {
  const was = before ? localTime(before) : "";
  const time = due === was ? {} : { due: due ? new Date(due).toISOString() : "none" };
  return {
    version, title: title.trim(), description, priority, labels: parted(labels), depends_on: parted(depends), ...time,
  };
}

/** The value of a form field: 2026-11-22T14:30, in local time. */
function localTime(iso) {
  const at = new Date(iso);
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
