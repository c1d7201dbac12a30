// Decides an approval: approve, deny with a reason, or approve with other arguments. Unfinished input
// is stored, so that a reload loses nothing.
import { html, useLayoutEffect, useRef, useState } from "../../core/ui.js";
import { Icon } from "../../parts/icon.js";
import { usePending } from "../../parts/pending.js";
import { later } from "../../texts-later.js";
import { ArgumentForm } from "./argument-form.js";
import { Arguments, changedNames, Changes, isRounded, seen } from "./arguments.js";

const words = later.approvals;
const MOST_ROWS = 18;

export function DecisionForm({ app, approval }) {
  const drafts = app.mine.within("approval");
  const [draft, setDraft] = useState(() => drafts.get(approval.id, { way: null, text: "" }));
  const { busy, problem, run, forget } = usePending();
  const change = (next) => {
    setDraft(next);
    forget();
    if (next.way) drafts.set(approval.id, next);
    else drafts.remove(approval.id);
  };
  const decide = (operation, args) => run(async () => {
    const asked = app.client.write(operation, { id: approval.id, ...args });
    asked.catch(({ code }) => (code === "not_pending" || code === "unknown_approval") && look(app, approval.id));
    app.state.control.note(await asked);
    drafts.remove(approval.id);
    app.say(words.done[operation](approval.tool));
  });
  const props = { approval, busy, draft, change, decide };
  return html`
    ${draft.way !== "edit" && html`<${Arguments} title=${words.arguments} value=${approval.arguments} />`}
    ${draft.way === null && html`<${Choices} ...${props} />`}
    ${draft.way === "deny" && html`<${Denying} ...${props} />`}
    ${draft.way === "edit" && html`<${Editing} ...${props} />`}
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
  `;
}

/** It was already decided or has expired: show its state. */
async function look(app, id) {
  try {
    app.state.control.note(await app.client.call("read_approval", { id }));
  } catch {
    // keep what is shown if the reader cannot read the new state
  }
}

/** Arguments with numbers that would be rounded cannot be edited. */
function Choices({ approval, busy, change, decide }) {
  const edit = () => change({ way: "edit", text: seen(JSON.stringify(approval.arguments, null, 2)) });
  return html`<div class="buttons">
    <button type="button" class="primary" disabled=${busy}
      onClick=${() => decide("approve", { hash: approval.hash })}>
      <${Icon} name="check" size=${16} />${words.approve}</button>
    <button type="button" class="danger" disabled=${busy} onClick=${() => change({ way: "deny", text: "" })}>
      ${words.deny}</button>
    ${!isRounded(approval.arguments) &&
    html`<button type="button" disabled=${busy} onClick=${edit}>
      <${Icon} name="edit" size=${16} />${words.edit}</button>`}
  </div>`;
}

function Denying({ busy, draft, change, decide }) {
  const submit = (event) => {
    event.preventDefault();
    decide("deny", { reason: draft.text.trim() });
  };
  const leave = () => change({ way: null, text: "" });
  return html`<form class="deciding" onSubmit=${submit} onKeyDown=${(event) => keyed(event, leave)}>
    <label class="field">${words.reason}
      <${Field} value=${draft.text} name="reason" maxlength="1000" rows="2"
        change=${(text) => change({ ...draft, text })} />
      <small>${words.reasonHint}</small>
    </label>
    <div class="buttons">
      <button type="submit" class="danger" disabled=${busy}>${words.denyNow}</button>
      <button type="button" onClick=${() => change({ way: null, text: "" })}>${words.back}</button>
    </div>
  </form>`;
}

function Editing({ approval, busy, draft, change, decide }) {
  const { value, mistake } = read(draft.text);
  const names = value ? changedNames(approval.arguments, value) : [];
  const isReady = names.length > 0;
  const submit = (event) => {
    event.preventDefault();
    if (isReady) decide("approve", { hash: approval.hash, arguments: value });
  };
  const leave = () => change({ way: null, text: "" });
  const asForm = value !== null && !draft.json;
  const form = useRef(null);
  useLayoutEffect(() => form.current.querySelector("[data-focus]")?.focus(), [asForm]);
  return html`<form class="deciding" ref=${form} onSubmit=${submit} onKeyDown=${(event) => keyed(event, leave)}>
    ${asForm
      ? html`<${ArgumentForm} value=${value} schema=${approval.schema}
          change=${(next) => change({ ...draft, text: seen(JSON.stringify(next, null, 2)) })} />`
      : html`<label class="field">${words.editing}
          <${Field} value=${draft.text} name="arguments" className="mono" spellcheck="false"
            rows=${Math.min(MOST_ROWS, draft.text.split("\n").length + 1)} invalid=${mistake !== null}
            change=${(text) => change({ ...draft, text })} />
        </label>`}
    <button type="button" class="plain small" disabled=${value === null}
      onClick=${() => change({ ...draft, json: !draft.json })}>${asForm ? words.toJson : words.toForm}</button>
    <div class="checked" role="status">
      ${mistake ? html`<p class="problem">${mistake}</p>`
        : html`<${Changes} before=${approval.arguments} after=${value} />`}
    </div>
    <div class="buttons">
      <button type="submit" class="primary" disabled=${busy || !isReady}>
        <${Icon} name="check" size=${16} />${words.approveChanged}</button>
      <button type="button" onClick=${() => change({ way: null, text: "" })}>${words.back}</button>
    </div>
  </form>`;
}

/** Parses edited arguments: {value, mistake}. Only the hub can tell whether the tool accepts them. */
function read(text) {
  try {
    const value = JSON.parse(text);
    const isObject = value !== null && typeof value === "object" && !Array.isArray(value);
    return isObject ? { value, mistake: null } : { value: null, mistake: words.notObject };
  } catch (error) {
    return { value: null, mistake: `${words.notJson} ${error.message}` };
  }
}

/** Control and Enter submits as the button does, Escape closes. */
function keyed(event, leave) {
  if (event.key === "Escape") {
    event.stopPropagation();
    event.preventDefault();
    leave();
  } else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) event.currentTarget.requestSubmit();
}

function Field({ value, name, rows, className, invalid, spellcheck, maxlength, change }) {
  const field = useRef(null);
  useLayoutEffect(() => field.current.focus(), []);
  return html`<textarea ref=${field} name=${name} rows=${rows} class=${className} spellcheck=${spellcheck}
    maxlength=${maxlength} dir="auto" aria-invalid=${invalid ? "true" : null} value=${value}
    onInput=${(event) => change(event.target.value)} />`;
}
