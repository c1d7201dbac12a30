// The inbox: `#/inbox`, `#/inbox/threads`, `#/inbox/notices`.
import { html, useEffect, useMemo, useState } from "../../core/ui.js";
import { Icon } from "../../parts/icon.js";
import { t } from "../../texts.js";
import { MentionItem, ThreadItem } from "./item.js";

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

/** Those of its own, and those of other features. */
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

/** Mentions, or what the hub and the mods have told. */
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

function Empty({ title, text, icon }) {
  return html`<div class="empty"><${Icon} name=${icon} size=${32} /><h2>${title}</h2><p>${text}</p></div>`;
}
