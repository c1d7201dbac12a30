// What is above a conversation: where one is, who is here, and what can be done with the thread.
import { html } from "../../core/ui.js";
import { kindOf, membersOf } from "../../core/ids.js";
import { visible } from "../../core/markdown.js";
import { Activity, Presence, presenceOf } from "../../parts/presence.js";
import { Icon, iconOfThread } from "../../parts/icon.js";
import { Menu } from "../../parts/menu.js";
import { t } from "../../texts.js";

export function Header({ app, thread }) {
  const title = app.state.titleOf(thread.id);
  const details = t.conversation.threadDetails;
  const named = app.state.labels.value.get(thread.id)?.title;
  return html`
    <header class="title">
      ${thread.parent
        ? html`<${Up} app=${app} thread=${thread} title=${title} />`
        : html`<${Icon} name=${iconOfThread(kindOf(thread.id))} className="of-thread" />`}
      <h1 class="cut" dir="auto">${named ? visible(named) : thread.parent ? t.conversation.repliesIn(title) : title.replace(/^#/, "")}</h1>
      <${Who} app=${app} thread=${thread} />
      <div class="tools">
        ${app.add.tools.items.value.map(
          (tool) => html`<${tool.view} key=${tool.key} app=${app} thread=${thread} />`,
        )}
        <${More} app=${app} thread=${thread} />
        <button type="button" class="icon" aria-label=${details} title=${details}
          onClick=${() => app.open("thread", thread.id)}><${Icon} name="info" /><span class="word">${t.details}</span></button>
      </div>
    </header>
  `;
}

/** What features offer for the thread, if they do. */
function More({ app, thread }) {
  const offered = () => app.add.threadMenu.offered({ thread: thread.id, message: null, text: "" });
  if (!offered().length) return null;
  return html`<${Menu} label=${t.conversation.moreOfThread} items=${offered} className="icon" />`;
}

/** From replies back to the message that they belong to. */
function Up({ app, thread, title }) {
  const words = t.conversation.up(title);
  const href = app.router.href("thread", [thread.parent, `m${thread.repliesTo}`]);
  return html`<a class="icon" href=${href} aria-label=${words} title=${words}><${Icon} name="back" /></a>`;
}

/** Who is in the thread and what they are at, in one quiet line. */
function Who({ app, thread }) {
  const kind = kindOf(thread.root);
  if (kind === "direct") return html`<${People} app=${app} thread=${thread} />`;
  return kind === "channel" && html`<${Channel} app=${app} thread=${thread} />`;
}

function People({ app, thread }) {
  const others = membersOf(thread.id).filter((id) => id !== app.state.me.value);
  const named = others.length > 1;
  return html`<p class="who cut">
    ${others.map((id) => html`<${Member} key=${id} app=${app} id=${id} thread=${thread} named=${named} />`)}
  </p>`;
}

function Member({ app, id, thread, named }) {
  const is = presenceOf(app.state, id);
  return html`<span class="member">
    <${Presence} app=${app} id=${id} />
    ${named && app.state.nameOf(id)}
    ${is === "busy"
      ? html`<${Activity} app=${app} id=${id} thread=${thread.id} />`
      : !named && t.presence[is]}
  </span>`;
}

function Channel({ app, thread }) {
  const channel = app.state.channels.value.get(thread.root.slice("channel.".length));
  if (!channel) return null;
  const { members, description } = channel;
  const here = members.filter((id) => app.state.participant(id)?.present).length;
  return html`<p class="who cut">
    <span>${t.conversation.members(members.length, here)}</span>
    ${description && html`<span class="description" title=${description}>${description}</span>`}
  </p>`;
}
