// The middle column with a thread: its title, its messages and the composer.
import { kindOf, membersOf } from "../../core/ids.js";
import { visible } from "../../core/markdown.js";
import { PAGE } from "../../core/thread.js";
import { fullTime, timeOf } from "../../core/time.js";
import { html, useEffect } from "../../core/ui.js";
import { Avatar } from "../../parts/avatar.js";
import { Icon, iconOfThread } from "../../parts/icon.js";
import { Menu } from "../../parts/menu.js";
import { useMessage } from "../../parts/message-link.js";
import { Activity, Presence, presenceOf } from "../../parts/presence.js";
import { t } from "../../texts.js";
import { Body } from "./body.js";
import { Log } from "./log.js";
import { EmptyThread } from "./empty-thread.js";

export function Conversation({ app, id, at, shown }) {
  const thread = app.state.threads.value.get(id);
  const outside = !app.state.takesPart(id);
  useEffect(() => () => forgetIfUnused(app, id), [id]);
  useEffect(() => {
    if (!thread) app.state.thread(id);
    else if (!thread.head.peek()) meet(app, thread);
  }, [id, thread, outside]);
  if (!thread) return null;
  const title = app.state.titleOf(id);
  const isEmpty = !outside && thread.head.value === 0 && thread.pending.value.length === 0;
  return html`
    <${Header} app=${app} thread=${thread} />
    ${thread.parent && html`<${Parent} app=${app} thread=${thread} />`}
    ${isEmpty && html`<${EmptyThread} app=${app} thread=${thread} />`}
    <${Log} key=${thread} app=${app} thread=${thread} title=${title} at=${at} shown=${shown} />
    <div class="foot">
      ${["notes", "foot"].map((slot) => app.add[slot].items.value.map(
        (part) => html`<${part.view} key=${`${id} ${part.key}`} app=${app} thread=${thread} />`,
      ))}
    </div>
  `;
}

/** A thread unknown to the page can still be long, or not exist yet. */
async function meet(app, thread) {
  try {
    const page = await app.client.call("read_thread", { thread: thread.id, limit: PAGE });
    thread.take(page.messages);
  } catch (error) {
    if (error.code && error.code !== "unknown_thread") app.say(error.message);
  }
}

/** Remove a thread that was only looked at from the list. */
function forgetIfUnused(app, id) {
  const threads = app.state.threads.peek();
  const thread = threads.get(id);
  if (!thread || thread.head.peek() || thread.pending.peek().length) return;
  const left = new Map(threads);
  left.delete(id);
  app.state.threads.value = left;
}

// The header of a conversation: title, members, and actions on the thread.

function Header({ app, thread }) {
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

/** The features' additions for the thread. */
function More({ app, thread }) {
  const offered = () => app.add.threadMenu.offered({ thread: thread.id, message: null, text: "" });
  if (!offered().length) return null;
  return html`<${Menu} label=${t.conversation.moreOfThread} items=${offered} className="icon">
    <${Icon} name="more" /><span class="word">${t.conversation.more}</span><//>`;
}

/** From replies back to the message they belong to. */
function Up({ app, thread, title }) {
  const words = t.conversation.up(title);
  const href = app.router.href("thread", [thread.parent, `m${thread.repliesTo}`]);
  return html`<a class="icon" href=${href} aria-label=${words} title=${words}><${Icon} name="back" /></a>`;
}

/** The members and their activity, in one line. */
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
    ${named && html`<span class="cut">${app.state.nameOf(id)}</span>`}
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

// The message that a reply thread belongs to, above the replies.

function Parent({ app, thread }) {
  const id = `m${thread.repliesTo}`;
  const { message, problem } = useMessage(app, id);
  if (problem) return html`<p class="parent quiet">${problem}</p>`;
  if (!message) return html`<div class="parent" aria-hidden="true"></div>`;
  return html`
    <section class="parent" aria-label=${t.conversation.parent} tabindex="0">
      <div class="message named">
        <${Avatar} app=${app} id=${message.sender_id} size=${2.25} />
        <div class="content">
          <header>
            <button type="button" class="sender" onClick=${() => app.open("participant", message.sender_id)}>
              ${app.state.nameOf(message.sender_id)}</button>
            <a class="at" title=${fullTime(message.sent_at)}
              href=${app.router.href("thread", [message.thread_id, id])}>
              <time datetime=${message.sent_at}>${timeOf(message.sent_at)}</time></a>
          </header>
          <${Body} app=${app} message=${message} />
        </div>
      </div>
    </section>
  `;
}
