// The list of threads on the left, and navigation between them.
import { html } from "../../core/ui.js";
import { lazy } from "../../parts/lazy.js";
import { t } from "../../texts.js";
import { Column } from "./column.js";
import { markAllRead } from "./thread-menu.js";
import { Threads } from "./threads.js";

const ThreadPanel = lazy(() => import("./thread-panel.js").then((module) => module.ThreadPanel));

export default function threads(app) {
  const column = new Column(app);
  app.add.sidebar.add({
    order: 20, view: () => html`<${Threads} app=${app} column=${column} />`,
  });
  app.add.panels.add({ kind: "thread", order: 10, view: ThreadPanel });
  const nextUnread = (step) => {
    if (!column.go(step, true)) app.say(t.sidebar.nothingUnread);
  };
  const commands = [
    { id: "next-thread", title: t.sidebar.next, keys: "alt+arrowdown", run: () => column.go(1) },
    { id: "previous-thread", title: t.sidebar.previous, keys: "alt+arrowup", run: () => column.go(-1) },
    { id: "next-unread", title: t.sidebar.nextUnread, keys: "alt+shift+arrowdown", run: () => nextUnread(1) },
    {
      id: "previous-unread", title: t.sidebar.previousUnread, keys: "alt+shift+arrowup",
      run: () => nextUnread(-1),
    },
  ];
  for (const command of commands) app.add.commands.add({ group: t.groups.going, ...command });
  app.add.commands.add({
    id: "mark-read", title: t.sidebar.markRead, slash: "mark-read", keys: "shift+escape", icon: "check",
    group: t.groups.threads, when: ({ thread }) => thread !== null,
    run: ({ thread }) => app.readUpTo(thread, app.state.thread(thread).head.peek()),
  });
  app.add.commands.add({
    id: "mark-all-read", title: t.sidebar.markAllRead, icon: "checks", menu: 30, group: t.groups.threads,
    run: () => app.say(markAllRead(app) ? t.sidebar.allRead : t.sidebar.nothingUnread),
  });
  app.add.commands.add({
    id: "thread-details", title: t.sidebar.details, icon: "info", group: t.groups.threads,
    when: ({ thread }) => thread !== null, run: ({ thread }) => app.open("thread", thread),
  });
}
