// Creates a poll.
import { html, useMemo, useState } from "../../core/ui.js";
import { FormDialog } from "../../parts/form-dialog.js";
import { ThreadChoice, threadsOf } from "../../parts/thread-choice.js";
import { words } from "./texts.js";

export function Create({ app, thread, question = "", close }) {
  const threads = useMemo(() => threadsOf(app, thread), [thread]);
  const [draft, setDraft] = useState({
    thread: thread ?? threads[0], question, options: "", deadline: "", secret: false, multiple: false, quorum: "",
  });
  const change = (name) => ({ target }) =>
    setDraft({ ...draft, [name]: target.type === "checkbox" ? target.checked : target.value });
  const create = async () => void (await app.client.write("create_poll", argumentsOf(draft)));
  const isReady = draft.question.trim() && linesOf(draft.options).length > 1;
  return html`<${FormDialog} title=${words.create} label=${words.add} ready=${isReady} submit=${create} close=${close}>
    <${Fields} app=${app} draft=${draft} change=${change} threads=${threads} />
  <//>`;
}

function Fields({ app, draft, change, threads }) {
  const tick = (name) => html`<label class="option"><input type="checkbox" name=${name} checked=${draft[name]}
    onChange=${change(name)} />${words[name]}</label>`;
  return html`
    <label class="field">${words.question}
      <input name="question" maxlength="500" required autocomplete="off" data-focus value=${draft.question}
        onInput=${change("question")} /></label>
    <label class="field">${words.options}
      <textarea name="options" rows="4" dir="auto" value=${draft.options} onInput=${change("options")} />
      <small>${words.optionsHint}</small></label>
    <${ThreadChoice} app=${app} label=${words.thread} threads=${threads} value=${draft.thread}
      change=${(thread) => change("thread")({ target: { value: thread } })} />
    <label class="field">${words.deadline}
      <input name="deadline" type="datetime-local" value=${draft.deadline} onInput=${change("deadline")} />
      <small>${words.deadlineHint}</small></label>
    <label class="field">${words.quorum}
      <input name="quorum" type="number" min="0" max="100000" inputmode="numeric" value=${draft.quorum}
        onInput=${change("quorum")} /></label>
    ${tick("secret")}${tick("multiple")}
  `;
}

const linesOf = (text) => text.split("\n").map((line) => line.trim()).filter(Boolean);

function argumentsOf({ thread, question, options, deadline, secret, multiple, quorum }) {
  return {
    thread, question: question.trim(), options: linesOf(options), secret, multiple, quorum: Number(quorum || 0),
    ...(deadline && { deadline: new Date(deadline).toISOString() }),
  };
}
