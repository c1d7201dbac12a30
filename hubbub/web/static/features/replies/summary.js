// The replies below a message, in one line that leads to them.
import { html } from "../../core/ui.js";
import { visible } from "../../core/markdown.js";
import { fullTime, timeOf, dayName, dayOf } from "../../core/time.js";
import { Avatar } from "../../parts/avatar.js";
import { Icon } from "../../parts/icon.js";
import { t } from "../../texts.js";

const FACES = 3;

export function Summary({ app, thread }) {
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
    ${latest && html`<time class="quiet" datetime=${latest.sent_at} title=${fullTime(latest.sent_at)}>
      ${when(latest.sent_at)}</time>`}
    ${unread > 0 && html`<span class=${badge}>${t.replies.unread(unread)}</span>`}
  </a>`;
}

/** Who spoke last, of those who are known to have spoken. */
function senders(thread) {
  const latest = [...thread.messages.values()].sort((a, b) => b.tseq - a.tseq);
  return [...new Set(latest.map((message) => message.sender_id))].slice(0, FACES);
}

function when(iso) {
  const isToday = dayOf(iso) === dayOf(new Date());
  return isToday ? timeOf(iso) : `${dayName(iso)}, ${timeOf(iso)}`;
}
