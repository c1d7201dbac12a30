// What an agent is about to say, while its model writes it: below the last message until that message
// comes. It is no message: it has no id, nothing can be done with it, and it may never be said.
import { visible } from "../../core/markdown.js";
import { html } from "../../core/ui.js";
import { Avatar } from "../../parts/avatar.js";
import { t } from "../../texts.js";

/** What is being written in a thread: [{turn, sender, step, text, at}], the first begun first. */
export function ghostsOf(state, thread) {
  return [...state.partials.value.values()].filter((each) => each.thread === thread);
}

/** As it was written: half a text is not yet the Markdown that it will be. */
export function Ghost({ app, ghost: { sender, text }, named }) {
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
