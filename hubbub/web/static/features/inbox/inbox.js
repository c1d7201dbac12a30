// The inbox: `#/inbox`, `#/inbox/threads`, `#/inbox/notices`.
import { firstWords } from "../../core/messages.js";
import { dayName, dayOf, fullTime, timeOf, today } from "../../core/time.js";
import { html, useComputed, useEffect, useMemo, useState } from "../../core/ui.js";
import { Avatar } from "../../parts/avatar.js";
import { Empty } from "../../parts/empty.js";
import { Icon } from "../../parts/icon.js";
import { t } from "../../texts.js";

const PAGE = 50;

export function Inbox({ app, args, mentions }) {
  const others = app.add.inbox.items.value;
  const tabs = useMemo(() => tabsOf(app, mentions, others), [others]);
  const tab = tabs.find(({ name }) => name === args[0]) ?? tabs[0];
  return html`
    <header class="title"><h1 tabindex="-1" data-focus>${t.inbox.title}</h1>
      <div class="inbox-tools">
        ${app.state.unread.value > 0 && html`<button class="plain" onClick=${() => app.run("mark-all-read")}>
          <${Icon} name="checks" size=${16} />${t.sidebar.markAllRead}</button>`}
      </div>
    </header>
    <div class="inbox">
      <nav class="choice" aria-label=${t.inbox.title}>
        ${tabs.map(({ name, title, count, urgent }, n) => html`<a key=${name}
          href=${app.router.href("inbox", n ? [name] : [])} aria-current=${name === tab.name ? "page" : null}>
          ${title}
          ${count() > 0 && html`<span class=${urgent ? "badge mention" : "badge"}>${count()}</span>`}
        </a>`)}
      </nav>
      <${tab.view} key=${tab.name} app=${app} />
    </div>
  `;
}

/** Its own tabs and those of other features. */
function tabsOf(app, mentions, others) {
  const said = (name) => () => html`<${Said} app=${app} mentions=${mentions} tab=${name} />`;
  const { unread, unreadMentions } = app.state;
  const own = [
    { name: "mentions", order: 10, urgent: true, count: () => unreadMentions.value, view: said("mentions") },
    { name: "threads", order: 20, count: () => unread.value, view: Threads },
    { name: "notices", order: 40, count: () => 0, view: said("notices") },
  ].map((tab) => ({ ...tab, title: t.inbox.tabs[tab.name] }));
  return [...own, ...others].sort((a, b) => a.order - b.order);
}

/** Mentions, or notices of the hub and the mods. */
function Said({ app, mentions, tab }) {
  useEffect(() => {
    if (mentions.messages.peek() === null) mentions.load();
  }, [mentions.messages.value === null]);
  if (mentions.problem.value) {
    return html`<p class="note danger" role="alert">${mentions.problem.value}</p>`;
  }
  if (mentions.messages.value === null) {
    return html`<p class="joining"><span class="spinner"></span>${t.loading}</p>`;
  }
  const wanted = (message) => (message.sender_kind === "system") === (tab === "notices");
  const shown = mentions.messages.value.filter(wanted);
  return html`
    ${shown.length === 0 &&
    html`<${Empty} ...${t.inbox.empty[tab]} icon=${tab === "notices" ? "bell" : "at"} />`}
    <ul class="items">
      ${shown.map((message) => html`<${MentionItem} key=${message.id} app=${app} message=${message} />`)}
    </ul>
    ${mentions.more.value &&
    html`<button class="plain" onClick=${() => mentions.load()}>${t.inbox.older}</button>`}
  `;
}

function Threads({ app }) {
  const [most, setMost] = useState(PAGE);
  const all = app.state.byActivity.value.filter((thread) => thread.head.value > 0);
  const unread = all.filter((thread) => thread.unread.value > 0);
  const ordered = [...unread, ...all.filter((thread) => thread.unread.value === 0)];
  if (!all.length) return html`<${Empty} ...${t.inbox.empty.threads} icon="message" />`;
  return html`
    <ul class="items">
      ${ordered.slice(0, most).map(
        (thread) => html`<${ThreadItem} key=${thread.id} app=${app} thread=${thread} />`,
      )}
    </ul>
    ${ordered.length > most &&
    html`<button class="plain" onClick=${() => setMost(most + PAGE)}>${t.inbox.older}</button>`}
  `;
}

// One row of the inbox: a message, or a thread with its latest message.

const MOST = 220; // characters of a message, shown on two lines

function MentionItem({ app, message: loaded }) {
  const message = app.state.current(loaded);
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

function ThreadItem({ app, thread }) {
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

/** The time for today, otherwise the day. */
function When({ iso }) {
  return html`<time class="quiet end" datetime=${iso} title=${fullTime(iso)}>
    ${dayOf(iso) === today.value ? timeOf(iso) : dayName(iso)}
  </time>`;
}
