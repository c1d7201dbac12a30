// `#/agent` creates an agent, `#/agent/NAME` edits one. The hub validates the form and reports problems
// beside the fields; until it is saved, the form is only stored in the browser.
import { html, useEffect, useLayoutEffect, useRef, useState } from "../../core/ui.js";
import { DiffView } from "../../parts/diff-view.js";
import { Empty } from "../../parts/empty.js";
import { Icon } from "../../parts/icon.js";
import { Moment } from "../../parts/moment.js";
import { Prose } from "../../parts/prose.js";
import { usePending } from "../../parts/pending.js";
import { words } from "./texts.js";

const LATER_MS = 400; // after the last keystroke
const TEXTS = ["description", "instruction", "model", "permission_mode"];
const NUMBERS = ["daily_usd", "daily_tokens", "max_steps"];
const ROLLED_OUT = ["instruction", "model"]; // fields that can differ for a share of the threads
const FIELDS = [...TEXTS, ...NUMBERS, "tools", "channels", "rollout"];
const SHARES = [0.05, 0.2, 0.5, 1];
const NEW = draftOf({});

export function AgentEditor({ app, args: [agent = ""] }) {
  return html`<${Editor} key=${agent} app=${app} agent=${agent} />`;
}

function Editor({ app, agent }) {
  const [about, setAbout] = useState(null); // {choices, definition, round}: a new form for each round
  const [problem, setProblem] = useState(null);
  const load = async ({ afresh = false } = {}) => {
    try {
      const choices = await app.client.call("agent_choices");
      const definition = agent && !choices.refused ? await app.client.call("read_agent", { agent }) : null;
      setAbout((before) => ({ choices, definition, round: (before?.round ?? 0) + afresh }));
      setProblem(null);
    } catch (error) {
      setProblem(error.message);
    }
  };
  useEffect(() => void load(), []);
  return html`
    <header class="title"><h1 tabindex="-1">${agent ? words.edit(agent) : words.make}</h1></header>
    <div class="page agent-editor">
      ${problem && html`<p class="note danger" role="alert">${problem}</p>`}
      ${about?.choices.refused && html`<${Empty} icon="agent" title=${words.refused} text=${about.choices.refused}>
        <a class="button" href="/join">${words.joinInstead}</a><//>`}
      ${about && !about.choices.refused && html`<${Form} key=${about.round} app=${app} agent=${agent}
        choices=${about.choices} definition=${about.definition} again=${load} />`}
    </div>`;
}

function Form({ app, agent, choices, definition, again }) {
  const isNew = !definition;
  const initial = isNew ? { ...NEW, model: choices.models[0] ?? "" } : draftOf(definition.fields);
  const unsaved = app.mine.within("agent");
  const [before] = useState(() => unsaved.get(agent, { draft: initial, name: agent, sentence: "" }));
  const [draft, setDraft] = useState(before.draft);
  const [name, setName] = useState(before.name);
  const [sentence, setSentence] = useState(before.sentence);
  const [opened, setOpened] = useState(Boolean(before.name || before.draft.instruction));
  const [{ problems, note, busy }, setState] = useState({ problems: [], note: null, busy: null });
  const put = (more) => setState((state) => ({ ...state, ...more }));
  const first = useRef(null);
  useLayoutEffect(() => first.current?.focus(), []);
  const fields = fieldsOf(draft);
  const changed = JSON.stringify(fields) !== JSON.stringify(fieldsOf(initial)) || name !== agent || sentence !== "";
  useLayoutEffect(() => {
    if (changed) unsaved.set(agent, { draft, name, sentence });
    else unsaved.remove(agent);
  }, [changed, name, sentence, JSON.stringify(draft)]);
  const afresh = () => {
    unsaved.remove(agent);
    return again({ afresh: true });
  };
  const change = (more) => setDraft((before) => ({ ...before, ...more }));
  const form = useRef(null);
  const refused = useRef(false); // the first field with a problem is shown
  useLayoutEffect(() => {
    if (!refused.current || busy) return;
    refused.current = false;
    form.current.querySelector("[aria-invalid]")?.focus();
  });
  const latest = useRef(0); // an earlier check can answer after a later one, or after a save
  useEffect(() => {
    const check = ++latest.current;
    if (!name || !(draft.instruction.trim() || (changed && !isNew))) return put({ problems: [] });
    const timer = setTimeout(async () => {
      if (check !== latest.current) return;
      const problems = await app.client.call("check_agent", { agent: name, new: isNew, ...fields })
        .then((found) => found.problems, problemsOf);
      if (check === latest.current) put({ problems });
    }, LATER_MS);
    return () => clearTimeout(timer);
  }, [name, JSON.stringify(draft)]);

  const drafted = async () => {
    const found = await app.client.call("draft_agent", { sentence });
    setDraft((now) => { // keep what was typed meanwhile
      const fresh = Object.entries(found.fields).filter(([field]) => now[field] === draft[field]);
      return { ...now, ...Object.fromEntries(fresh) };
    });
    setName((before) => before || found.agent);
    setOpened(true);
    put({ note: found.note ?? null });
    return { agent: name || found.agent, fields: { ...fields, ...found.fields } };
  };
  const during = (what, work) => async (event) => {
    event?.preventDefault();
    latest.current++;
    put({ busy: what, problems: [] });
    try {
      await work();
    } catch (error) {
      refused.current = true;
      put({ problems: problemsOf(error) });
    }
    put({ busy: null });
  };
  const save = during("save", async () => {
    const now = isNew && sentence.trim() && !draft.instruction.trim() ? await drafted() : { agent: name, fields };
    const args = { agent: now.agent, ...now.fields };
    if (isNew) {
      const made = await app.client.write("add_agent", args);
      unsaved.remove(agent);
      return app.talkTo(made.agent);
    }
    try {
      const saved = await app.client.write("edit_agent", { ...args, version: definition.version });
      app.say(words.saved(agent, saved.version));
    } catch (error) {
      if (error.code === "conflict") await again(); // what was typed stays, compared with the new version
      throw error;
    }
    await again();
  });
  const said = (field) => problems.filter((each) => each.field === field).map(({ message }) => message).join("; ");
  const known = new Set(["agent", ...FIELDS]);
  const others = problems.filter(({ field }) => !known.has(field)).map(({ message }) => message).join("; ");
  const input = { draft, change, said };
  return html`
    <form ref=${form} onSubmit=${save} novalidate inert=${busy === "save"}>
      ${isNew && html`<label class="field">${words.sentence}
        <input ref=${first} name="sentence" autocomplete="off" maxlength="2000" dir="auto" value=${sentence}
          onInput=${(event) => setSentence(event.target.value)} /><small>${words.sentenceHint}</small></label>`}
      ${note && html`<p class="note warn" role="status">${note}</p>`}
      ${!choices.models.length && html`<p class="note warn">${words.noModel}</p>`}
      <details class="folded" open=${opened || problems.length > 0} onToggle=${(event) => setOpened(event.target.open)}>
      <summary>${words.more}</summary>
      ${isNew && html`<${Field} label=${words.name} hint=${words.nameHint} problem=${said("agent")}
        view=${(more) => html`<input name="agent" autocomplete="off" spellcheck=${false} maxlength="64" value=${name}
          onInput=${(event) => setName(event.target.value.trim())} ...${more} />`} />`}
      <${Text} name="instruction" rows=${8} ...${input} />
      <${Text} name="description" ...${input} />
      <div class="pair">
        <${Choice} name="model" choices=${[...(initial.model ? [] : [["", words.usualModel]]), ...choices.models.map((each) => [each, each])]}
          ...${input} />
        <${Choice} name="permission_mode" choices=${Object.entries(words.permissions)} ...${input} />
      </div>
      <${Tools} tools=${choices.tools} ...${input} />
      <${Channels} choices=${choices} ...${input} />
      <div class="pair">
        <${Number} name="daily_usd" hint=${words.noLimit} ...${input} />
        <${Number} name="daily_tokens" hint=${words.noLimit} ...${input} />
        <${Number} name="max_steps" hint=${words.usualSteps} ...${input} />
      </div>
      </details>
      ${others && html`<p class="note danger" role="alert">${others}</p>`}
      ${isNew && html`<div class="actions">
        <button type="submit" class="primary" disabled=${busy || !(sentence.trim() || draft.instruction.trim())}>
          <${Icon} name="plus" size=${16} />${words.saveNew}</button>
        <button type="button" disabled=${busy || !sentence.trim()} onClick=${during("draft", drafted)}>${words.draft}</button>
        ${changed && html`<button type="button" disabled=${busy} onClick=${afresh}>${words.discard}</button>`}
        ${busy === "draft" && html`<span class="quiet" role="status">${words.drafting}</span>`}</div>`}
      ${!isNew && html`<${Choice} name="share" choices=${[...new Set([+draft.share, ...SHARES])].sort().map((n) => [`${n}`, words.shares(n)])}
        ...${input} said=${() => said("rollout")} />
      <div class="actions">
        <button type="submit" class="primary" disabled=${busy || !changed}>${words.save}</button>
        ${changed && html`<button type="button" disabled=${busy} onClick=${afresh}>${words.discard}</button>`}
        <a class="button" href=${app.router.href("turns", [agent])}>${words.recorded}</a>
        ${definition.removable && html`<${Remove} app=${app} agent=${agent} />`}
        <span class="quiet small">${changed ? words.file(definition.file) : words.unchanged}</span></div>
      ${changed && html`<${Changed} before=${definition.fields} after=${fields} />`}`}
    </form>
    <aside>
      <${SideTalk} app=${app} model=${draft.model || choices.models[0]} instruction=${draft.instruction || sentence} />
      ${!isNew && html`<${Versions} app=${app} agent=${agent} versions=${definition.versions} afresh=${afresh} />`}
    </aside>`;
}

/** The problem that the hub's refusal names. */
function problemsOf({ details, message }) {
  const path = details?.field ?? ""; // for example args.tools.0
  const [field] = path.replace(/^args\./, "").split(".");
  return [{ field, message: path ? message.replace(`${path}: `, "") : message }];
}

/** A field with its label, help line and problem. `view` gets the attributes of the input. */
function Field({ label, hint, problem, view }) {
  return html`<label class="field">${label}${view(problem ? { "aria-invalid": "true" } : {})}
    ${problem ? html`<small class="problem" role="alert">${problem}</small>` : hint && html`<small>${hint}</small>`}</label>`;
}

function Text({ name, rows = 0, draft, change, said }) {
  const more = { name, value: draft[name], dir: "auto", onInput: (event) => change({ [name]: event.target.value }) };
  return html`<${Field} label=${words[name]} hint=${words[`${name}Hint`]} problem=${said(name)}
    view=${(also) => (rows ? html`<textarea rows=${rows} ...${more} ...${also} />`
      : html`<input autocomplete="off" ...${more} ...${also} />`)} />`;
}

function Number({ name, hint, draft, change, said }) {
  return html`<${Field} label=${words[name]} problem=${said(name)}
    view=${(also) => html`<input inputmode="decimal" autocomplete="off" name=${name} placeholder=${hint} value=${draft[name]}
      onInput=${(event) => change({ [name]: event.target.value })} ...${also} />`} />`;
}

function Choice({ name, choices, draft, change, said }) {
  return html`<${Field} label=${words[name]} problem=${said(name)}
    view=${(also) => html`<select name=${name} value=${draft[name]} onChange=${(event) => change({ [name]: event.target.value })} ...${also}>
      ${choices.map(([value, title]) => html`<option key=${value} value=${value} selected=${value === draft[name]}>${title}</option>`)}
    </select>`} />`;
}

function Tools({ tools, draft, change, said }) {
  const chosen = draft.tools;
  const extra = (chosen ?? []).filter((name) => !tools.some((each) => each.name === name)).map((name) => ({ name, about: "" }));
  const toggle = (name) => change({ tools: chosen.includes(name) ? chosen.filter((each) => each !== name) : [...chosen, name] });
  const radio = (on, title, tools_) => html`<label class="option"><input type="radio" name="which-tools" checked=${on}
    onChange=${() => change({ tools: tools_ })} />${title}</label>`;
  return html`<fieldset><legend>${words.tools}</legend>
    ${radio(chosen === null, words.allTools(tools.length), null)}
    ${radio(chosen !== null, words.chosenTools, chosen ?? [])}
    ${chosen && html`<ul class="pick">${[...extra, ...tools].map(({ name, about }) => html`<li key=${name}>
      <label class="list-row"><input type="checkbox" name="tool" checked=${chosen.includes(name)} onChange=${() => toggle(name)} />
        <span class="name">${name}</span><span class="cut quiet small">${about}</span></label></li>`)}</ul>`}
    ${said("tools") && html`<small class="problem" role="alert">${said("tools")}</small>`}
  </fieldset>`;
}

function Channels({ choices: { channels, everybody }, draft, change, said }) {
  const chosen = draft.channels;
  const toggle = (name) => change({ channels: chosen.includes(name) ? chosen.filter((each) => each !== name) : [...chosen, name] });
  if (!channels.length && !everybody.length) return null;
  return html`<fieldset><legend>${words.channels}</legend>
    ${everybody.length > 0 && html`<p class="quiet small">${words.everybody(everybody.map((name) => `#${name}`).join(", "))}</p>`}
    ${channels.map((name) => html`<label class="option" key=${name}><input type="checkbox" name="channel"
      checked=${chosen.includes(name)} onChange=${() => toggle(name)} />#${name}</label>`)}
    ${said("channels") && html`<small class="problem" role="alert">${said("channels")}</small>`}
  </fieldset>`;
}

function Remove({ app, agent }) {
  const [asked, setAsked] = useState(false);
  const remove = async () =>
    (await app.tried(() => app.client.write("remove_agent", { agent }), words.removed(agent))) && app.router.go("agents");
  if (!asked) return html`<button type="button" class="danger" onClick=${() => setAsked(true)}>${words.remove}</button>`;
  return html`<span class="note warn" role="alert">${words.removeMeaning}
    <button type="button" class="danger" onClick=${remove}>${words.removeNow(agent)}</button>
    <button type="button" onClick=${() => setAsked(false)}>${words.keep}</button></span>`;
}

function Versions({ app, agent, versions, afresh }) {
  const back = (to) => app.tried(async () => {
    const { version } = await app.client.write("roll_back_agent", { agent, to });
    app.say(words.saved(agent, version));
    await afresh();
  });
  return html`<section aria-label=${words.versions}><div class="section"><h2>${words.versions}</h2></div>
    <ol class="agent-versions">${versions.map(({ version, at, by, fields }, n) => html`<li key=${version}>
      <p><b>${words.version(version)}</b> ${n === 0 && html`<span class="chip ok">${words.current}</span>`}
        <span class="quiet small"> ${by ? html`${app.state.nameOf(by)}, <${Moment} at=${at} />` : words.byHand}</span></p>
      ${!fields && html`<p class="quiet small">${words.gone}</p>`}
      ${fields && html`<details class="folded"><summary>${versions[n + 1] ? words.changes : words.first}</summary>
        <${Changed} before=${versions[n + 1]?.fields ?? {}} after=${fields} /></details>`}
      ${n > 0 && fields && html`<button type="button" class="small" aria-label=${`${words.back}: ${words.version(version)}`}
        onClick=${() => back(version)}>${words.back}</button>`}
    </li>`)}</ol></section>`;
}

/** The differences between two versions, by field. */
function Changed({ before, after }) {
  const written = (value) => {
    if (value?.share) return [words.shares(value.share), value.model, value.instruction].filter(Boolean).join("\n");
    return value == null ? "" : Array.isArray(value) ? value.join("\n") : `${value}`;
  };
  const names = FIELDS.filter((name) => written(before[name]) !== written(after[name]));
  return names.map((name) => html`<${DiffView} key=${name} title=${words[name]} a=${written(before[name])} b=${written(after[name])} />`);
}

/** Converts an agent's fields to form values and back: null is the network's default. The form has the
 * rolled-out values; `base` has those of the other threads.
 * @returns {Record<string, any>} */
function draftOf(fields) {
  const { share = 1, ...rolledOut } = fields.rollout ?? {};
  const draft = Object.fromEntries([...TEXTS, ...NUMBERS].map((name) => [name, `${rolledOut[name] ?? fields[name] ?? ""}`]));
  if (draft.permission_mode === "full") draft.permission_mode = "";
  const base = Object.fromEntries(ROLLED_OUT.map((name) => [name, fields[name] ?? null]));
  return { ...draft, tools: fields.tools ?? null, channels: fields.channels ?? [], share: `${share}`, base };
}

/** A text that is not a number stays one, for the hub to refuse: without it there would be no limit. */
const numberOf = (text) => (text === "" ? null : isFinite(text) ? +text : text);

function fieldsOf(draft) {
  const texts = TEXTS.map((name) => [name, draft[name].trim() ? draft[name] : null]);
  const numbers = NUMBERS.map((name) => [name, numberOf(draft[name].trim())]);
  const fields = { ...Object.fromEntries([...texts, ...numbers]), tools: draft.tools, channels: draft.channels.length ? draft.channels : null };
  const differing = ROLLED_OUT.filter((name) => fields[name] !== draft.base[name]).map((name) => [name, fields[name]]);
  if (draft.share === "1" || !differing.length) return { ...fields, rollout: null };
  return { ...fields, ...draft.base, rollout: { share: +draft.share, ...Object.fromEntries(differing) } };
}

// A test conversation with the agent as in the form: only its model is called, and nothing is stored.

function SideTalk({ app, model, instruction }) {
  const [messages, setMessages] = useState([]);
  const [text, setText] = useState("");
  const { busy, problem, run } = usePending();
  if (!model) return null;
  const ask = async (event) => {
    event.preventDefault();
    const all = [...messages, { role: "user", text }];
    setMessages(all);
    setText("");
    const isAnswered = await run(async () => {
      const answer = await app.client.call("ask_model", { model, instruction, messages: all.slice(-20) });
      setMessages([...all, { role: "assistant", text: answer.text }]);
    });
    if (isAnswered) return;
    setMessages(messages);
    setText((now) => now || text); // keep what was typed meanwhile
  };
  return html`<section class="side-talk" aria-label=${words.trial}>
    <div class="section"><h2>${words.trial}</h2></div>
    <p class="quiet small">${words.trialHint}</p>
    <ol aria-live="polite">${messages.map(({ role, text: said }, n) => html`<li key=${n} class=${role}>
      ${role === "user" ? html`<p dir="auto">${said}</p>` : html`<${Prose} app=${app} text=${said} />`}</li>`)}</ol>
    ${busy && html`<p class="quiet small" role="status">${words.answering}</p>`}
    ${problem && html`<p class="note danger" role="alert">${problem}</p>`}
    <form onSubmit=${ask}><input aria-label=${words.say} placeholder=${words.say} autocomplete="off" dir="auto" value=${text}
      onInput=${(event) => setText(event.target.value)} />
      <button type="submit" disabled=${busy || !text.trim() || !instruction.trim()}>${words.ask}</button></form>
  </section>`;
}
