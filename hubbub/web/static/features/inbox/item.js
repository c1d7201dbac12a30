// One line of the inbox: a message, or a thread with its latest one.
import { html, useComputed } from "../../core/ui.js";
import { firstWords } from "../../core/messages.js";
import { dayName, dayOf, fullTime, timeOf } from "../../core/time.js";
import { Avatar } from "../../parts/avatar.js";
import { t } from "../../texts.js";

const MOST = 220; // characters of a message; two lines are shown

export function MentionItem({ app, message }) {
  const read = useComputed(() => app.state.thread(message.thread_id).read.value >= message.tseq).value;
  return html`<li>
    <a class=${`item ${read ? "" : "unread"}`}
      href=${app.router.href("thread", [message.thread_id, message.id])}>
      <${Avatar} app=${app} id=${message.sender_id} size=${2} />
      <span class="item-head"><b>${app.state.nameOf(message.sender_id)}</b>
        <span class="quiet cut">${app.state.titleOf(message.thread_id)}</span>
        ${!read && html`<span class="badge mention">${t.inbox.new}</span>`}
        <${When} iso=${message.sent_at} /></span>
      <span class="item-text" dir="auto">${firstWords(message, MOST)}</span>
    </a>
  </li>`;
}

export function ThreadItem({ app, thread }) {
  thread.changed.value;
  const { latest } = thread;
  const unread = thread.unread.value;
  const mentions = thread.unreadMentions.value;
  return html`<li>
    <a class=${`item ${unread ? "unread" : ""}`} href=${app.router.href("thread", [thread.id])}>
      <${Avatar} app=${app} id=${latest?.sender_id ?? thread.id} size=${2} />
      <span class="item-head"><b class="cut">${app.state.titleOf(thread.id)}</b>
        ${thread.parent !== null && html`<span class="quiet">${t.inbox.replies}</span>`}
        ${mentions > 0 && html`<span class="badge mention">${t.sidebar.mentions(mentions)}</span>`}
        ${unread > 0 && html`<span class="badge">${t.sidebar.unread(unread)}</span>`}
        ${latest && html`<${When} iso=${latest.sent_at} />`}</span>
      <span class="item-text" dir="auto">
        ${latest && html`<span class="quiet">${app.state.nameOf(latest.sender_id)}: </span>${firstWords(latest, MOST)}`}
      </span>
    </a>
  </li>`;
}

/** The time today, the day before that. */
function When({ iso }) {
  const today = dayOf(iso) === dayOf(new Date());
  return html`<time class="quiet end" datetime=${iso} title=${fullTime(iso)}>
    ${today ? timeOf(iso) : dayName(iso)}
  </time>`;
}
