// The document editor: the whole text, merged with concurrent changes of others.
import { visible } from "../../core/markdown.js";
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../../core/ui.js";
import { Choice } from "../../parts/choice.js";
import { Loading } from "../../parts/empty.js";
import { Icon } from "../../parts/icon.js";
import { Prose } from "../../parts/prose.js";
import { useWatched } from "../../parts/watched.js";
import { Draft } from "./drafts.js";
import { joined, merge } from "./merge.js";
import { Title } from "./reader.js";
import { readWhole } from "./reading.js";
import { words } from "./texts.js";

export function Editor({ app, id, news }) {
  const kept = useMemo(() => new Draft(app, id), [id]);
  const found = useWatched(() => readWhole(app.client, id), { key: id });
  useEffect(() => kept.watch(), [kept]);
  return html`
    <${Title} app=${app} id=${id} found=${found.value}>
      <a class="button" href=${app.router.href("document", [id])} title=${words.leave}>
        <${Icon} name="back" size=${16} />${words.leave}</a>
    <//>
    <div class="page document">
      <${Loading} found=${found} />
      ${found.value && html`<${Form} app=${app} id=${id} news=${news} found=${found.value} kept=${kept} />`}
    </div>
  `;
}

const NOTHING = { busy: false, problem: null, conflict: null, told: null };

function Form({ app, id, news, found, kept }) {
  const [draft, setDraft] = useState(
    () => kept.read() ?? { base: found.version, text: found.text, note: "" },
  );
  const [state, setState] = useState(NOTHING);
  const [previews, setPreviews] = useState(false);
  const change = (changes) => {
    const next = { ...draft, ...changes };
    setDraft(next);
    kept.write(next);
  };
  const save = (event) => {
    event?.preventDefault();
    if (!state.busy) saveDraft({ app, id, draft, kept, setState, take });
  };
  const take = ({ text, version }, told = words.conflict.taken) => {
    change({ text, base: version });
    setState({ ...NOTHING, told });
  };
  return html`
    <${Meanwhile} app=${app} news=${news} id=${id} base=${draft.base} />
    ${state.told && html`<p class="note info" role="status">${state.told}</p>`}
    ${state.conflict && html`<${Conflicts} conflict=${state.conflict} take=${take} />`}
    <form class="editing" onSubmit=${save}>
      <${Choice} label=${words.modes} choices=${[[false, words.write], [true, words.preview]]}
        value=${previews} choose=${setPreviews} />
      ${previews
        ? html`<article class="preview"><${Prose} app=${app} text=${draft.text} whole /></article>`
        : html`<${Text} title=${found.document.title} value=${draft.text} busy=${state.busy} save=${save}
            change=${(text) => change({ text })} />`}
      <label class="field">${words.note}
        <input name="note" maxlength="500" autocomplete="off" readonly=${state.busy} value=${draft.note}
          onInput=${(event) => change({ note: event.target.value })} />
        <small>${words.noteHint}</small>
      </label>
      ${state.problem && html`<p class="note danger" role="alert">${state.problem}</p>`}
      <div class="buttons">
        <button type="submit" class="primary" title=${words.saveKeys} disabled=${state.busy}>${words.save}</button>
      </div>
    </form>
  `;
}

/** Report the result of saving; an unsaved text stays, and conflicts are shown side by side. */
async function saveDraft({ app, id, draft, kept, setState, take }) {
  setState({ ...NOTHING, busy: true });
  kept.keep();
  try {
    const { base, text, note } = draft;
    const done = await app.client.write("write_document", { id, base_version: base, text, note: note.trim() });
    if (done.status === "conflict") {
      const conflict = await conflictOf(app, id, draft);
      if (conflict.parts.some((part) => part.conflict)) setState({ ...NOTHING, conflict });
      else take({ ...conflict, text: joined(conflict.parts, []) }, words.conflict.none);
      return;
    }
    kept.drop();
    app.say(words.saved[done.status](done.version));
    const isMerged = done.status === "merged";
    app.router.go("document", isMerged ? [id, "changes", base, done.version] : [id]);
  } catch (error) {
    setState({ ...NOTHING, problem: error.message });
  }
}

async function conflictOf(app, id, { base, text }) {
  const [was, now] = await Promise.all([readWhole(app.client, id, base), readWhole(app.client, id)]);
  return { parts: merge(was.text, now.text, text), version: now.version };
}

/** Another person saved the document being edited. */
function Meanwhile({ app, news, id, base }) {
  const told = news.about.value.get(id);
  if (!told || told.data.by === app.state.me.value || told.data.version <= base) return null;
  return html`<p class="note info" role="status">${words.news(told.data.by, told.data.version)}</p>`;
}

function Text({ title, value, busy, change, save }) {
  const field = useRef(null);
  useLayoutEffect(() => {
    field.current.setSelectionRange(0, 0); // start at the top
    field.current.focus();
  }, []);
  const key = (event) => {
    const wanted = event.key === "Enter" || event.key.toLowerCase() === "s";
    if (wanted && (event.ctrlKey || event.metaKey) && !event.isComposing) save(event);
  };
  return html`<textarea ref=${field} name="document" class="mono" dir="auto" spellcheck="true" data-focus readonly=${busy}
    aria-label=${words.editing(title)} value=${value} onKeyDown=${key}
    onInput=${(event) => change(event.target.value)} />`;
}

// Conflicting changes side by side, with a choice for each.

const text = words.conflict;
const CHOICES = ["theirs", "mine", "both"];

/** `conflict` has the parts of the merge, and the current version. */
function Conflicts({ conflict: { parts, version }, take }) {
  const places = parts.filter(({ conflict }) => conflict);
  const [choices, setChoices] = useState(() => places.map(() => "mine"));
  const heading = useRef(null);
  useLayoutEffect(() => heading.current.focus(), [parts]);
  const choose = (n, choice) => setChoices(choices.map((each, at) => (at === n ? choice : each)));
  return html`<section class="conflicts" aria-labelledby="conflicts">
    <h2 id="conflicts" tabindex="-1" ref=${heading}>${text.title}</h2>
    <p role="alert">${text.text}</p>
    ${places.map((place, n) => html`<${Place} key=${n} n=${n} of=${places.length} version=${version}
      place=${place.conflict} choice=${choices[n]} choose=${(choice) => choose(n, choice)} />`)}
    <div class="buttons">
      <button type="button" class="primary"
        onClick=${() => take({ text: joined(parts, choices), version })}>${text.take}</button>
    </div>
  </section>`;
}

function Place({ n, of, version, place, choice, choose }) {
  const titles = { theirs: text.theirs(version), mine: text.mine, both: text.both };
  return html`<fieldset class="conflict">
    <legend>${text.place(n + 1, of)}</legend>
    <details><summary>${text.was}</summary><${Lines} lines=${place.was} /></details>
    <div class="sides">
      ${["theirs", "mine"].map((side) => html`<div key=${side} class=${side} data-chosen=${choice === side}>
        <b class="small">${titles[side]}</b><${Lines} lines=${place[side]} /></div>`)}
    </div>
    <div class="choice">
      ${CHOICES.map((each) => html`<label key=${each}>
        <input type="radio" name=${`place-${n}`} checked=${choice === each} onChange=${() => choose(each)} />
        ${titles[each]}</label>`)}
    </div>
  </fieldset>`;
}

function Lines({ lines }) {
  if (!lines.length) return html`<p class="quiet small">${text.gone}</p>`;
  return html`<pre tabindex="0" dir="auto">${visible(lines.join("\n"))}</pre>`;
}
