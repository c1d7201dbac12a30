// Groups and sorts the threads of the left column. Pure.

export const GROUPS = ["channels", "direct", "everyone", "mods"];

const OF_KIND = { channel: "channels", direct: "direct", broadcast: "everyone", mod: "mods" };
const RECENT_MS = 12 * 3600 * 1000;
const MOST_REPLIES = 5; // reply threads under one parent, besides unread ones

/**
 * @param threads   All loaded threads (core/thread.js).
 * @param joined    Names of channels the reader is a member of; `here`: the id of the open thread.
 * @param drafts    Ids of threads with a draft.
 * @returns Map from a name of GROUPS to its threads; replies are not among them.
 */
export function groupsOf(threads, { joined, here, drafts, me }) {
  const groups = new Map(GROUPS.map((name) => [name, []]));
  for (const thread of threads) {
    if (thread.parent === null && belongs(thread, { joined, here, drafts, me })) {
      groups.get(OF_KIND[thread.kind])?.push(thread);
    }
  }
  groups.get("channels").sort(byName);
  groups.get("mods").sort(byName);
  groups.get("direct").sort(byActivity);
  return groups;
}

function belongs(thread, { joined, here, drafts, me }) {
  if (thread.id === here) return true;
  if (thread.kind === "channel") return joined.has(thread.id.slice("channel.".length));
  if (thread.kind === "broadcast") return true;
  if (thread.kind === "direct" && !thread.id.split(".").includes(me)) return false;
  return thread.head.value > 0 || drafts.has(thread.id) || thread.pending.value.length > 0;
}

/** The reply threads to show per parent: unread, open, with a draft, or recently active; latest first. */
export function repliesOf(threads, { here, now, drafts }) {
  const found = new Map();
  for (const thread of threads) {
    if (thread.parent === null || !(thread.head.value || drafts.has(thread.id))) continue;
    if (!found.has(thread.parent)) found.set(thread.parent, []);
    found.get(thread.parent).push(thread);
  }
  for (const [parent, replies] of found) {
    replies.sort(byActivity);
    const shown = replies.filter(
      (thread, n) =>
        thread.unread.value > 0 || thread.id === here || drafts.has(thread.id) ||
        (n < MOST_REPLIES && isRecent(thread, now)),
    );
    found.set(parent, shown);
  }
  return found;
}

function isRecent(thread, now) {
  thread.changed.value;
  const sent = thread.latest?.sent_at;
  return sent != null && now - Date.parse(sent) < RECENT_MS;
}

/** The first `most`, and any others that are unread or open. */
export function fewer(threads, most, here) {
  return threads.filter((thread, n) => n < most || thread.unread.value > 0 || thread.id === here);
}

/** The thread `step` positions after `here` (before it, if negative), cyclic; null if there is none. */
export function neighbour(threads, here, step, wanted = (thread) => true) {
  const start = threads.findIndex((thread) => thread.id === here);
  const count = threads.length;
  for (let n = 1; n <= count; n++) {
    const from = start === -1 && step < 0 ? 0 : start;
    const thread = threads[(((from + n * step) % count) + count) % count];
    if (thread.id !== here && wanted(thread)) return thread;
  }
  return null;
}

/** Threads without messages have no place in the log: they come first. */
function byActivity(a, b) {
  return (b.lastSeq.value || Infinity) - (a.lastSeq.value || Infinity) || byName(a, b);
}

function byName(a, b) {
  return a.id < b.id ? -1 : a.id > b.id ? 1 : 0;
}
