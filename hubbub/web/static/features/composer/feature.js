// Writing messages: the composer, drafts, completions, and what others are writing.
import { effect, html, signal } from "../../core/ui.js";
import { membersOf } from "../../core/ids.js";
import { textOf } from "../../core/messages.js";
import { Icon } from "../../parts/icon.js";
import { t } from "../../texts.js";
import { Composer } from "./composer.js";
import { Doing } from "./doing.js";
import { Drafts } from "./drafts.js";
import { addSources } from "./sources.js";

const LONGEST_QUOTE = 280;

export default function composer(app) {
  const desk = { drafts: new Drafts(), composer: null, isWanted: false };
  app.drafts = desk.drafts.ids;
  app.compose = {
    edit: (entry) => edit(app, desk, entry),
    /** thread -> what is shown there in place of the composer: ({thread}), until it is taken out. */
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
        : membersOf(id).length > 0 && html`<p class="note">${t.composer.lookingOn}</p>`;
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
    // Where one goes to write, the composer may not be drawn yet.
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

/** What is quoted: what is selected of it, else how it begins. */
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
  else desk.drafts.write(thread, { text, quote }); // for when one may write there again
}
