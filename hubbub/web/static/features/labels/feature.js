// Titles of threads; resolving, following and muting them: the mod `threads`.
import { parentOf } from "../../core/ids.js";
import { dialogOf } from "../../parts/dialog.js";
import { lazy } from "../../parts/lazy.js";
import { t } from "../../texts.js";
import { Store } from "./store.js";
import { words } from "./texts.js";

const Chips = lazy(() => import("./chips.js").then((module) => module.Chips), "labels.css");
const Rename = lazy(() => import("./chips.js").then((module) => module.Rename));

export default function labels(app) {
  const store = new Store(app);
  const renaming = dialogOf(app, Rename);
  app.add.tools.add({ order: 5, view: Chips });
  addReplies(app, store, renaming);
  addChoices(app, store);
  return () => store.end();
}

const labelOf = (app, thread) => app.state.labels.value.get(thread) ?? {};

/** In thread menus, and as commands. */
function offer(app, { id, order, icon, title, when, run }) {
  const may = ({ thread }) => Boolean(thread) && app.state.takesPart(thread) && isBegun(app, thread) && when(thread);
  const does = ({ thread }) => run(thread);
  app.add.threadMenu.add({ title, icon, order, when: may, run: does });
  app.add.commands.add({ id, title, icon, group: t.groups.threads, when: may, run: does });
}

const isBegun = (app, thread) => (app.state.threads.value.get(thread)?.head.value ?? 0) > 0;

function addReplies(app, store, renaming) {
  const { client } = app;
  const isReply = (thread) => parentOf(thread) !== null;
  const isResolved = (thread) => Boolean(labelOf(app, thread).resolver);
  offer(app, {
    id: "thread-resolve", order: 50, icon: "check", title: words.resolve, run: (thread) => write(app, store, "resolve_thread", thread),
    when: (thread) => client.may("resolve_thread") && isReply(thread) && !isResolved(thread),
  });
  offer(app, {
    id: "thread-reopen", order: 50, icon: "turn", title: words.reopen, run: (thread) => write(app, store, "reopen_thread", thread),
    when: (thread) => client.may("reopen_thread") && isReply(thread) && isResolved(thread),
  });
  offer(app, {
    id: "thread-title", order: 51, icon: "edit", title: words.rename, run: (thread) => (renaming.value = { store, thread }),
    when: (thread) => client.may("set_thread_title") && isReply(thread),
  });
}

function addChoices(app, store) {
  if (!app.client.may("follow_thread")) return;
  const own = (thread) => labelOf(app, thread).choice ?? null;
  const choice = (id, order, icon, title, operation, told, when) =>
    offer(app, { id, order, icon, title, when, run: (thread) => write(app, store, operation, thread, told) });
  choice("thread-follow", 52, "bell", words.follow, "follow_thread", words.followed, (thread) => own(thread) !== "followed");
  choice("thread-unfollow", 52, "bell", words.unfollow, "unfollow_thread", null, (thread) => own(thread) === "followed");
  choice("thread-mute", 53, "moon", words.mute, "mute_thread", words.muted, (thread) => app.state.choiceIn(thread) !== "muted");
  choice("thread-unmute", 53, "moon", words.unmute, "unmute_thread", null, (thread) => own(thread) === "muted");
}

const write = (app, store, operation, thread, told = null) => app.tried(() => store.write(operation, { thread }), told);
