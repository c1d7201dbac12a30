// Actions on a thread in the left column.
import { membersOf } from "../../core/ids.js";
import { t } from "../../texts.js";

export function menuOf(app, column, thread) {
  const others = membersOf(thread.id).filter((member) => member !== app.state.me.peek());
  const items = /** @type {any[]} */ ([
    {
      title: t.sidebar.markRead, icon: "check",
      run: () => app.readUpTo(thread.id, thread.head.peek()),
    },
    { title: t.sidebar.details, icon: "info", run: () => app.open("thread", thread.id) },
  ]);
  const folded = column.folded.peek().has(thread.id);
  if (folded || column.repliesUnder(thread.id).peek().length) {
    items.push({
      title: folded ? t.sidebar.showReplies : t.sidebar.foldReplies, icon: "replies",
      run: () => column.fold(thread.id),
    });
  }
  if (others.length === 1) {
    items.push({
      title: t.sidebar.profile(others[0]), icon: "person", run: () => app.open("participant", others[0]),
    });
  }
  items.push(...app.add.threadMenu.offered({ thread: thread.id, message: null, text: "" }));
  if (thread.kind === "channel" && thread.parent === null) {
    const name = thread.id.slice("channel.".length);
    items.push({ line: true }, {
      title: t.channels.leave, icon: "leave",
      run: () => app.run("channel-leave", { thread: thread.id }, name),
    });
  }
  return items;
}

/** Mark everything as read. Returns whether anything was unread. */
export function markAllRead(app) {
  const unread = [...app.state.threads.peek().values()].filter((thread) => thread.unread.peek() > 0);
  for (const thread of unread) app.readUpTo(thread.id, thread.head.peek());
  return unread.length > 0;
}
