// Agents at work, and the partial message of an agent while its model writes: below the last message,
// until the message arrives. A partial message has no id and no actions, and may never be sent.
import { visible } from "../../core/markdown.js";
import { html } from "../../core/ui.js";
import { Avatar } from "../../parts/avatar.js";
import { Activity } from "../../parts/presence.js";
import { t } from "../../texts.js";

/**
 * The partial messages of a thread, [{turn, sender, step, text, at}], earliest first; then the agents
 * that work there without writing, with no text.
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

/** Shown unparsed: half a text is not yet valid Markdown. */
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
