// Writing messages: composer, drafts, completions and typing indicators.
import { readersOf } from "../../core/delivery.js";
import { membersOf } from "../../core/ids.js";
import { textOf } from "../../core/messages.js";
import { effect, html, signal, useEffect, useState } from "../../core/ui.js";
import { Icon } from "../../parts/icon.js";
import { t } from "../../texts.js";
import { Composer } from "./composer.js";
import { Drafts } from "./drafts.js";

const LONGEST_QUOTE = 280;

export default function composer(app) {
  const desk = { drafts: new Drafts(), composer: null, isWanted: false };
  app.drafts = desk.drafts.ids;
  app.compose = {
    edit: (entry) => edit(app, desk, entry),
    /** thread -> the view that replaces the composer there: ({thread}), until removed. */
    instead: signal(new Map()),
  };
  keepDrafts(app, desk.drafts);
  addSources(app);
  app.add.foot.add({
    view: (props) => {
      const { id } = props.thread;
      const other = app.compose.instead.value.get(id);
      if (other) return html`<${other} ...${props} />`;
      return app.state.takesPart(id) || app.state.control.voiceIn(id)
        ? html`<${Composer} ...${props} desk=${desk} />`
        : membersOf(id).length > 0 && html`<p class="note">
            ${app.state.owner.value ? t.composer.lookingOn : t.composer.notIn}</p>`;
    },
  });
  app.add.notes.add({ order: 90, view: Doing });
  addCommands(app, desk);
}

function keepDrafts(app, drafts) {
  effect(() => {
    if (app.state.me.value) drafts.open(app.mine.within("drafts"));
  });
  const keep = () => drafts.storage && drafts.keep();
  window.addEventListener("pagehide", keep);
  document.addEventListener("visibilitychange", keep);
}

function addCommands(app, desk) {
  app.add.commands.add({
    id: "compose", title: t.composer.write, group: t.conversation.group, keys: "n",
    when: () => desk.composer !== null,
    // After navigation, the composer may not be rendered yet.
    run: () => (desk.composer ? desk.composer.focus() : (desk.isWanted = true)),
  });
  app.add.commands.add({
    id: "quote", title: t.composer.quote, group: t.conversation.group, keys: "q",
    when: ({ message }) => message !== null && desk.composer !== null,
    run: ({ message }) => {
      const { text } = desk.composer.draft;
      desk.composer.change({ quote: { message_id: message.id, text: partOf(message) } }, text.length);
    },
  });
  app.add.marks.add({ slot: "action", order: 20, view: QuoteAction });
}

function QuoteAction({ app, message, thread }) {
  const run = () => app.run("quote", { thread: thread.id, message, text: "" });
  return html`<button type="button" class="icon small" aria-label=${t.composer.quote}
    title=${t.composer.quoteKey} onClick=${run}><${Icon} name="quote" /></button>`;
}

/** The quoted text: the selection, or the message's beginning. */
function partOf(message) {
  const selection = document.getSelection();
  const inside = selection?.anchorNode?.parentElement?.closest(`[data-message="${message.id}"]`);
  const text = (inside && selection.toString().trim()) || textOf(message).trim();
  return text.length > LONGEST_QUOTE ? `${[...text.slice(0, LONGEST_QUOTE)].slice(0, -1).join("")}…` : text;
}

function edit(app, desk, { thread, text, args }) {
  const { quote = null } = args;
  for (const each of app.add.speech) each.back?.(thread, args);
  if (desk.composer) desk.composer.change({ text, quote }, text.length);
  else desk.drafts.write(thread, { text, quote }); // for when the composer is back
}

// Who is typing, and how to reach agents working in this thread: one line above the composer, always
// present to avoid layout shifts.

function Doing({ app, thread }) {
  const writing = useWriting(app, thread);
  const agents = app.state.control.workIn(thread.id);
  return html`
    <div class="doing">
      <p class="cut" aria-hidden="true">${writing.length > 0 && t.composer.typing(writing)}</p>
      ${agents.length > 0 &&
      app.add.work.items.value.map(
        (part, n) => html`<${part.view} key=${n} app=${app} thread=${thread} agents=${agents} />`,
      )}
      <div class="hidden-text" role="status">${spoken(app, agents, writing)}</div>
    </div>
  `;
}

/** Without seconds: it is announced whenever it changes. */
function spoken(app, agents, writing) {
  const does = ([id, { state, tool }]) => t.composer.does(app.state.nameOf(id), t.activity[state]?.(tool) ?? state);
  const parts = agents.map(does);
  if (writing.length) parts.push(t.composer.typing(writing));
  return parts.join(". ");
}

/** Participants who recently signalled that they are typing. */
function useWriting(app, thread) {
  const [, look] = useState(0);
  const now = Date.now();
  const all = [...(app.state.typing.value.get(thread.id) ?? [])].filter(
    ([id, until]) => until > now && id !== app.state.me.value,
  );
  const next = Math.min(...all.map(([, until]) => until));
  useEffect(() => {
    if (!all.length) return undefined;
    const timer = setTimeout(() => look((n) => n + 1), next - Date.now() + 20);
    return () => clearTimeout(timer);
  }, [next]);
  return all.map(([id]) => app.state.nameOf(id));
}

// The completions: @participants, #channels, /commands.

function addSources(app) {
  app.add.completions.add({ trigger: "@", suggest: (_, thread) => participants(app, thread) });
  app.add.completions.add({ trigger: "#", suggest: () => channels(app) });
  app.add.completions.add({ trigger: "/", suggest: (_, thread) => commands(app, thread) });
}

/** Members of the thread first, and among them those who are present. */
function participants(app, thread) {
  const me = app.state.me.peek();
  const readers = new Set(readersOf(app.state, thread.id, me));
  const order = ({ id, present }) => (readers.has(id) ? 0 : 2) + (present ? 0 : 1);
  return [...app.state.participants.peek().values()]
    .filter(({ id }) => id !== me)
    .sort((a, b) => order(a) - order(b) || (a.id < b.id ? -1 : 1))
    .map(({ id, card }) => ({
      value: id, label: id, who: id,
      hint: [card?.name && app.state.nameOf(id), card?.description].filter(Boolean).join(" · "),
      also: card?.name ?? "",
      note: readers.has(id) ? "" : t.composer.notHere,
    }));
}

function channels(app) {
  return [...app.state.channels.peek().values()]
    .sort((a, b) => b.joined - a.joined || (a.name < b.name ? -1 : 1))
    .map(({ name, description, joined }) => ({
      value: name, label: `#${name}`, hint: description ?? "", note: joined ? "" : t.composer.notJoined,
    }));
}

function commands(app, thread) {
  const context = { thread: thread.id, message: null, text: "" };
  return [...app.add.commands]
    .filter((command) => command.slash && (!command.when || command.when(context)))
    .map(({ slash, hint, title }) => ({ value: slash, label: `/${slash}`, hint: hint ?? title, note: "" }));
}
