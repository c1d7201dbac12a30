// Reply threads: the replies below a message, and a link to them.
import { parentOf, replyThread } from "../../core/ids.js";
import { visible } from "../../core/markdown.js";
import { computed, html } from "../../core/ui.js";
import { Avatar } from "../../parts/avatar.js";
import { Icon } from "../../parts/icon.js";
import { Moment } from "../../parts/moment.js";
import { t } from "../../texts.js";

export default function replies(app) {
  const here = computed(() => (app.here.value ? app.state.repliesIn(app.here.value) : new Map()));
  app.add.marks.add({
    slot: "below", order: 40,
    view: ({ message, thread }) => {
      const found = thread.id === app.here.value ? here.value.get(message.seq) : null;
      return found ? html`<${Summary} app=${app} thread=${found} />` : null;
    },
  });
  app.add.marks.add({ slot: "action", order: 10, view: ReplyAction });
  app.add.commands.add({
    id: "reply", title: t.replies.reply, group: t.conversation.group, keys: "r",
    when: ({ message }) => message !== null && canReply(app, message),
    run: ({ message }) => {
      const thread = replyThread(message.thread_id, message.seq);
      app.state.thread(thread); // create it if it does not exist
      app.show(thread);
    },
  });
}

function ReplyAction({ app, message, thread }) {
  if (!canReply(app, message)) return null;
  const run = () => app.run("reply", { thread: thread.id, message, text: "" });
  return html`<button type="button" class="icon small" aria-label=${t.replies.reply}
    title=${t.replies.replyKey} onClick=${run}><${Icon} name="replies" /></button>`;
}

/** The hub limits how deep reply threads can nest. */
function canReply(app, { thread_id: thread }) {
  let depth = 0;
  for (let up = parentOf(thread); up !== null; up = parentOf(up)) depth++;
  return depth < app.state.limits.thread_depth;
}

// The replies below a message, as a one-line link.

const FACES = 3;

function Summary({ app, thread }) {
  thread.changed.value;
  const { latest } = thread;
  const unread = thread.unread.value;
  const label = app.state.labels.value.get(thread.id);
  const badge = thread.unreadMentions.value ? "badge mention" : "badge";
  return html`<a class="replies" href=${app.router.href("thread", [thread.id])} data-thread=${thread.id}>
    <span class="faces">
      ${senders(thread).map((id) => html`<${Avatar} key=${id} app=${app} id=${id} size=${1.25} />`)}
    </span>
    ${label?.icon && html`<${Icon} name=${label.icon} size=${15} />
      <span class="hidden-text">${label.note}</span>`}
    ${label?.title && html`<span class="cut" dir="auto">${visible(label.title)}</span>`}
    <b>${t.replies.count(thread.saidAfter(0))}</b>
    ${latest && html`<span class="quiet"><${Moment} at=${latest.sent_at} /></span>`}
    ${unread > 0 && html`<span class=${badge}>${t.replies.unread(unread)}</span>`}
  </a>`;
}

/** The latest senders, as far as they are loaded. */
function senders(thread) {
  const latest = [...thread.messages.values()].sort((a, b) => b.tseq - a.tseq);
  return [...new Set(latest.map((message) => message.sender_id))].slice(0, FACES);
}
