// Who is at work, and what an agent is about to say while its model writes it: below the last message,
// until that message comes. It is no message: it has no id, nothing can be done with it, and it may
// never be said.
import { visible } from "../../core/markdown.js";
import { html } from "../../core/ui.js";
import { Avatar } from "../../parts/avatar.js";
import { Activity } from "../../parts/presence.js";
import { t } from "../../texts.js";

/**
 * What is being written in a thread, [{turn, sender, step, text, at}], the first begun first; then those
 * who work there and write nothing yet, without a text.
 */
export function liveDraftsOf(state, thread) {
  const written = [...state.partials.value.values()].filter((each) => each.thread === thread);
  const writers = new Set(written.map(({ sender }) => sender));
  const working = state.control.workIn(thread).filter(([sender]) => !writers.has(sender));
  return [...written, ...working.map(([sender]) => ({ sender, text: null }))];
}

export function Working({ app, sender, thread }) {
  const name = app.state.nameOf(sender);
  return html`
    <article class="message named ghost" aria-busy="true" aria-label=${t.conversation.works(name)}>
      <${Avatar} app=${app} id=${sender} size=${2.25} />
      <div class="content">
        <header><span class="sender">${name}</span></header>
        <p class="working"><span class="pulse"></span><${Activity} app=${app} id=${sender} thread=${thread.id} /></p>
      </div>
    </article>
  `;
}

/** As it was written: half a text is not yet the Markdown that it will be. */
export function LiveDraft({ app, ghost: { sender, text }, named }) {
  return html`
    <article class=${named ? "message named ghost" : "message ghost"} aria-busy="true"
      aria-label=${t.conversation.writes(app.state.nameOf(sender))}>
      ${named ? html`<${Avatar} app=${app} id=${sender} size=${2.25} />` : html`<span class="at beside" />`}
      <div class="content">
        ${named && html`<header>
          <span class="sender">${app.state.nameOf(sender)}</span>
          <span class="at">${t.conversation.writing}</span>
        </header>`}
        <div class="prose" dir="auto"><div class="piece plain">${visible(text)}</div></div>
      </div>
    </article>
  `;
}
