// The inbox: mentions, unread threads, notices.
import { html } from "../../core/ui.js";
import { Badge } from "../../parts/badge.js";
import { lazy } from "../../parts/lazy.js";
import { Pinned } from "../../parts/pinned.js";
import { t } from "../../texts.js";
import { Mentions } from "./mentions.js";

const Inbox = lazy(() => import("./inbox.js").then((module) => module.Inbox));

export default function inbox(app) {
  const mentions = new Mentions(app);
  app.add.views.add({
    name: "inbox", title: () => t.inbox.title,
    view: (props) => html`<${Inbox} mentions=${mentions} ...${props} />`,
  });
  app.add.sidebar.add({ order: 5, view: Link });
  app.add.commands.add({
    id: "inbox", title: t.inbox.title, keys: "g i", icon: "inbox", group: t.groups.going,
    run: () => app.router.go("inbox"),
  });
}

/** Whether the tab has its own row on the left, like pending approvals. */
const hasOwnRow = (app, tab) => tab === "approvals" && app.state.control.waiting.value.length > 0;

function Link({ app }) {
  const mentions = app.state.unreadMentions.value;
  const { view, args } = app.route.value;
  const current = view === "inbox" && !hasOwnRow(app, args[0]);
  return html`<${Pinned} icon="inbox" title=${t.inbox.title} href=${app.router.href("inbox")} current=${current}>
    ${mentions > 0 && html`<${Badge} mention shown=${`@${mentions}`} told=${t.sidebar.mentions(mentions)} />`}
  <//>`;
}
