// The composer.
import { visible } from "../../core/markdown.js";
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../../core/ui.js";
import { Avatar } from "../../parts/avatar.js";
import { Icon } from "../../parts/icon.js";
import { fit, sends } from "../../parts/text-fields.js";
import { t } from "../../texts.js";
import { commandIn, completed, fitting, unescaped, wordAt } from "./completion.js";

const TYPING_EVERY_MS = 4000;

/** @param desk  `drafts` and `composer`: where the composer registers itself for the feature's commands. */
export function Composer({ app, thread, desk }) {
  const field = useRef(null);
  const [draft, setDraft] = useState(() => desk.drafts.read(thread.id));
  const [caret, setCaret] = useState(-1); // -1: the field is not focused
  const [problem, setProblem] = useState(null);
  const goTo = useRef(null); // the caret position after the next render
  const { text, quote } = draft;
  const isEmpty = !text.trim() && !inPlaceOfWords(app, thread);

  const change = (changes, at = null) => {
    const changed = { ...draft, ...changes };
    setDraft(changed);
    setProblem(null);
    desk.drafts.write(thread.id, changed);
    goTo.current = at;
    if (at !== null) setCaret(at);
  };
  const completion = useCompletion({
    app, thread, place: { text, caret, isAt: caret >= 0 },
    change: (made, at) => change({ text: made }, at),
  });
  const send = () => {
    const refusal = say(app, thread, text, quote);
    if (refusal) setProblem(refusal);
    else change({ text: "", quote: null }, 0);
  };
  const typed = useTyping(app, thread);
  const elsewhere = desk.drafts.elsewhere.value;
  useEffect(() => {
    if (elsewhere?.thread === thread.id) setDraft(desk.drafts.read(thread.id));
  }, [elsewhere]);

  useLayoutEffect(() => fit(field.current), [text]);
  useLayoutEffect(() => {
    if (goTo.current === null) return;
    field.current.focus();
    field.current.setSelectionRange(goTo.current, goTo.current);
    goTo.current = null;
  });
  useLayoutEffect(() => {
    desk.composer = { change, focus: () => field.current.focus(), draft };
    if (desk.isWanted) field.current.focus();
    desk.isWanted = false;
    return () => (desk.composer = null);
  });

  const key = (event) => {
    if (completion.key(event)) return;
    if (event.key === "Enter" && !event.isComposing && sends(event)) {
      event.preventDefault();
      send();
    } else if (event.key === "ArrowUp" && !text && !event.altKey) {
      event.preventDefault();
      app.run("my-last-message");
    } else if (event.key === "Escape") {
      event.preventDefault();
      if (quote) change({ quote: null });
      else field.current.blur();
    }
  };
  const place = () => {
    const { selectionStart, selectionEnd } = field.current;
    setCaret(selectionStart === selectionEnd ? selectionStart : -1);
  };
  const input = (event) => {
    change({ text: event.target.value });
    place();
    typed(event.target.value);
  };
  const unquote = () => {
    change({ quote: null });
    field.current.focus();
  };
  const voice = app.state.control.voiceIn(thread.id);
  const title = app.state.titleOf(thread.id, voice ?? app.state.me.value);
  const toWhom = thread.parent ? t.composer.labelReply : t.composer.label(title);
  const label = voice ? t.composer.labelAs(toWhom, voice) : toWhom;
  return html`
    <form class="composer" data-voice=${voice} onSubmit=${(event) => (event.preventDefault(), send())}>
      <${CompletionList} app=${app} ...${completion} />
      ${quote && html`<${QuoteChip} quote=${quote} remove=${unquote} />`}
      <div class="writing">
        <textarea name="text" rows="1" ref=${field} value=${text} aria-label=${label} placeholder=${label}
          dir="auto" autocomplete="off" aria-autocomplete="list" aria-haspopup="listbox" aria-controls=${LIST}
          aria-activedescendant=${completion.items.length ? optionId(completion.active) : null}
          onInput=${input} onKeyDown=${key} onKeyUp=${place} onClick=${place} onFocus=${place}
          onBlur=${() => setCaret(-1)} />
        ${app.add.writing.items.value.map(
          (part) => html`<${part.view} key=${part.key} app=${app} thread=${thread} />`,
        )}
        <button type="submit" class="icon send" aria-label=${t.composer.send} title=${t.composer.send}
          disabled=${isEmpty}><${Icon} name="send" /></button>
      </div>
      ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    </form>
  `;
}

function QuoteChip({ quote, remove }) {
  return html`<div class="quote-chip">
    <${Icon} name="quote" size=${16} />
    <span class="cut" dir="auto">${visible(quote.text)}</span>
    <button type="button" class="icon small" aria-label=${t.composer.removeQuote}
      title=${t.composer.removeQuote} onClick=${remove}><${Icon} name="close" size=${14} /></button>
  </div>`;
}

/** Send the text, or run its command. Returns why it could not, or null. */
function say(app, thread, text, quote) {
  if (app.status.peek().state === "refused") return t.composer.refused;
  const instead = text.trim() ? null : inPlaceOfWords(app, thread);
  if (!text.trim() && !instead) return "";
  const asked = instead ? null : commandIn(text);
  if (asked) return run(app, thread, asked);
  const { control } = app.state;
  const others = [...app.add.speech];
  const reason = firstOf(others, (each) => each.wait?.(thread.id));
  if (reason) return reason;
  const along = others.map((each) => each.with(thread.id));
  const extra = Object.assign({}, quote && { quote }, control.speechIn(thread.id), ...along);
  const said = instead ?? unescaped(text.trim());
  app.speak(thread, said, extra);
  control.said(thread.id);
  for (const each of others) each.said(thread.id);
  return null;
}

/** The text to send if attachments are present and nothing was written; otherwise null. */
function inPlaceOfWords(app, thread) {
  return firstOf([...app.add.speech], (each) => each.instead?.(thread.id));
}

const firstOf = (all, of) => all.map(of).find(Boolean) ?? null;

function run(app, thread, { name, rest }) {
  const context = { thread: thread.id, message: null, text: rest };
  const command = app.add.commands.find((each) => each.slash === name);
  if (!command) return t.composer.noCommand(name);
  if (command.when && !command.when(context)) return t.composer.notNow(name);
  try {
    Promise.resolve(command.run(context, rest)).catch((error) => app.say(error.message));
  } catch (error) {
    return error.message;
  }
  return null;
}

/** Send typing signals, at most now and then. */
function useTyping(app, thread) {
  const told = useRef(0);
  return (text) => {
    if (!text.trim() || text.startsWith("/") || !thread.head.peek()) return;
    if (Date.now() - told.current < TYPING_EVERY_MS) return;
    told.current = Date.now();
    app.client.signal("typing", thread.id);
  };
}

// The completions above the composer: a listbox whose active option the text field refers to.

const LIST = "completions";
const optionId = (n) => `completion-${n}`;

function CompletionList({ app, items, active, choose }) {
  const list = useRef(null);
  useLayoutEffect(() => list.current?.children[active]?.scrollIntoView({ block: "nearest" }), [active]);
  return html`
    <ul class="completions" id=${LIST} role="listbox" aria-label=${t.composer.completions} ref=${list}
      hidden=${items.length === 0}>
      ${items.map((item, n) => html`<li key=${item.value} id=${optionId(n)} role="option"
        aria-selected=${n === active} onPointerDown=${(event) => (event.preventDefault(), choose(item))}>
        ${item.who && html`<${Avatar} app=${app} id=${item.who} size=${1.5} presence />`}
        <b>${item.label}</b>
        <span class="hint cut">${item.hint}</span>
        ${item.note && html`<span class="note-text">${item.note}</span>`}
      </li>`)}
    </ul>
  `;
}

// The completions for the word being written.

/**
 * `place` has `text` and `caret`; `change(text, caret)` inserts a completed text.
 * @returns {{items, active, choose, key}}  `key(event)` returns whether it handled the keystroke.
 */
function useCompletion({ app, thread, place, change }) {
  const [closed, setClosed] = useState(-1); // start of the word whose list was closed
  const [moved, setMoved] = useState({ word: null, active: 0 });
  const found = place.isAt ? wordAt(place.text, place.caret) : null;
  const word = found && `${found.trigger}${found.word}`;
  const items = useMemo(() => (found ? suggestions(app, thread, found) : []), [word, found?.start]);
  const isOpen = found !== null && items.length > 0 && closed !== found.start;
  const active = moved.word === word ? Math.min(moved.active, items.length - 1) : 0;
  const choose = (item) => {
    const made = completed(place.text, place.caret, found, item.value);
    change(made.text, made.caret);
  };
  const key = (event) => {
    if (!isOpen || event.isComposing) return false;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) setMoved({ word, active: (active + step + items.length) % items.length });
    else if (event.key === "Escape") setClosed(found.start);
    else if (event.key === "Tab" || isChoice(event, items[active], found)) choose(items[active]);
    else return false;
    event.preventDefault();
    event.stopPropagation();
    return true;
  };
  return { items: isOpen ? items : [], active, choose, key };
}

/** Enter sends a completed word, Control and Enter always send. */
function isChoice({ key, ctrlKey, metaKey, shiftKey }, item, { word }) {
  return key === "Enter" && !ctrlKey && !metaKey && !shiftKey && item.value !== word;
}

function suggestions(app, thread, { trigger, word }) {
  const all = [...app.add.completions].filter((source) => source.trigger === trigger);
  return fitting(all.flatMap((source) => source.suggest(word, thread)), word);
}
