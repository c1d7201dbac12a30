// State of the left column: the threads shown, and folded groups.
import { computed, effect, signal } from "../../core/ui.js";
import { channelThread } from "../../core/ids.js";
import { fewer, GROUPS, groupsOf, neighbour, repliesOf } from "./groups.js";

const MOST_DIRECT = 12; // direct threads shown by default
const NONE = new Set();

export class Column {
  constructor(app) {
    this.app = app;
    this.folded = signal(new Set(app.storage.get("folded", []))); // groups, and threads with folded replies
    this.all = signal(false); // whether all direct threads are shown
    const threads = () => app.state.threads.value.values();
    const here = () => app.here.value;
    const drafts = () => app.drafts?.value ?? NONE;
    this.joined = computed(() => {
      const channels = [...app.state.channels.value.values()];
      return new Set(channels.filter((channel) => channel.joined).map((channel) => channel.name));
    });
    const groups = computed(() =>
      groupsOf(threads(), {
        joined: this.joined.value,
        here: here(),
        drafts: drafts(),
        me: app.state.me.value,
      }),
    );
    const replies = computed(() => repliesOf(threads(), { here: here(), now: Date.now(), drafts: drafts() }));
    this.groups = each(GROUPS, (name) => () => groups.value.get(name));
    this.replies = new Map(); // thread -> signal of the reply threads under it
    this.repliesUnder = (id) => {
      if (!this.replies.has(id)) this.replies.set(id, list(() => this.shownReplies(replies.value, id)));
      return this.replies.get(id);
    };
    this.shown = each(GROUPS, (name) => () => this.shownOf(name));
    this.working = computed(() => working(app.state.activities.value));
    effect(() => this.makeThreads());
  }

  /** Joined channels, the broadcast thread and drafts are listed before their first message. */
  makeThreads() {
    const { me, threads } = this.app.state;
    if (!me.value) return;
    const wanted = ["broadcast", ...(this.app.drafts?.value ?? NONE)];
    for (const name of this.joined.value) wanted.push(channelThread(name));
    for (const id of wanted) if (!threads.value.has(id)) this.app.state.thread(id);
  }

  shownOf(name) {
    const threads = this.groups[name].value;
    const here = this.app.here.value;
    if (this.folded.value.has(name)) return fewer(threads, 0, here);
    return name === "direct" && !this.all.value ? fewer(threads, MOST_DIRECT, here) : threads;
  }

  /** The replies of a thread; of folded ones only unread or open ones. */
  shownReplies(replies, id) {
    const under = replies.get(id) ?? [];
    return this.folded.value.has(id) ? fewer(under, 0, this.app.here.value) : under;
  }

  /** Fold or unfold a group, or a thread's replies; stored. */
  fold(name) {
    const folded = new Set(this.folded.peek());
    if (!folded.delete(name)) folded.add(name);
    this.folded.value = folded;
    this.app.storage.set("folded", [...folded]);
  }

  /** All listed threads, from top to bottom. */
  flat() {
    const under = (thread) => [thread, ...this.repliesUnder(thread.id).peek().flatMap(under)];
    return GROUPS.flatMap((name) => this.shown[name].peek().flatMap(under));
  }

  /** Go to the next thread (`step` 1) or the previous one (-1); `unread`: only unread threads. */
  go(step, unread = false) {
    const wanted = unread ? (thread) => thread.unread.peek() > 0 : undefined;
    const found = neighbour(this.flat(), this.app.here.peek(), step, wanted);
    if (found) this.app.show(found.id);
    return found;
  }
}

/** A computed list that stays the same object while its items are the same. */
function list(of) {
  let last = [];
  return computed(() => {
    const next = of();
    const same = last.length === next.length && next.every((item, n) => item === last[n]);
    return same ? last : (last = next);
  });
}

function each(names, of) {
  return Object.fromEntries(names.map((name) => [name, list(of(name))]));
}

/** thread -> agents working in it. */
function working(activities) {
  const found = new Map();
  for (const [agent, threads] of activities) {
    for (const thread of threads.keys()) found.set(thread, [...(found.get(thread) ?? []), agent]);
  }
  return found;
}
