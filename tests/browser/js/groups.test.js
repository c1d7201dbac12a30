import { Thread } from "/static/core/thread.js";
import { fewer, groupsOf, neighbour, repliesOf } from "/static/features/threads/groups.js";
import { equal, test } from "./harness.js";

const NOW = Date.parse("2026-01-02T12:00:00Z");
const NOBODY = { joined: new Set(), here: null, drafts: new Set(), me: "ann" };
const ids = (threads) => threads.map((thread) => thread.id);

/** A thread with `head` messages of which the first `read` were read; the last was sent `hours` ago. */
function thread(id, { head = 1, read = head, seq = head, hours = 1 } = {}) {
  const made = new Thread(id);
  const sent_at = new Date(NOW - hours * 3600_000).toISOString();
  made.summarise({ head, last_seq: seq, read, messages: head ? [{ seq, tseq: head, sent_at, id: `m${seq}` }] : [] });
  return made;
}

test("channels one is in come by name, other channels do not", () => {
  const threads = ["channel.b", "channel.a", "channel.c"].map((id) => thread(id));
  const groups = groupsOf(threads, { ...NOBODY, joined: new Set(["a", "b"]) });
  equal(ids(groups.get("channels")), ["channel.a", "channel.b"]);
});

test("direct threads come by activity, the latest first", () => {
  const threads = [thread("dm.ann.bob", { seq: 3 }), thread("dm.ann.cyd", { seq: 9 }), thread("dm.ann.dan", { seq: 5 })];
  equal(ids(groupsOf(threads, NOBODY).get("direct")), ["dm.ann.cyd", "dm.ann.dan", "dm.ann.bob"]);
});

test("an empty direct thread shows when it is open or has a draft, and then first", () => {
  const threads = [thread("dm.ann.bob", { seq: 3 }), thread("dm.ann.cyd", { head: 0 })];
  equal(ids(groupsOf(threads, NOBODY).get("direct")), ["dm.ann.bob"]);
  equal(ids(groupsOf(threads, { ...NOBODY, here: "dm.ann.cyd" }).get("direct")), ["dm.ann.cyd", "dm.ann.bob"]);
  const drafts = new Set(["dm.ann.cyd"]);
  equal(ids(groupsOf(threads, { ...NOBODY, drafts }).get("direct")), ["dm.ann.cyd", "dm.ann.bob"]);
});

test("a channel that was left shows while it is open", () => {
  const threads = [thread("channel.old")];
  equal(ids(groupsOf(threads, { ...NOBODY, here: "channel.old" }).get("channels")), ["channel.old"]);
});

test("direct threads of others are not among one's own", () => {
  equal(groupsOf([thread("dm.bob.cyd")], NOBODY).get("direct"), []);
});

test("broadcasts and mods have groups of their own", () => {
  const groups = groupsOf([thread("broadcast"), thread("mod.tasks")], NOBODY);
  equal(ids(groups.get("everyone")), ["broadcast"]);
  equal(ids(groups.get("mods")), ["mod.tasks"]);
});

test("reply threads hang under their parents: unread ones, and those that were active lately", () => {
  const threads = [
    thread("channel.a"),
    thread("channel.a.t1", { seq: 10 }),
    thread("channel.a.t2", { seq: 4, hours: 100 }),
    thread("channel.a.t3", { seq: 5, hours: 100, head: 2, read: 1 }),
    thread("channel.a.t1.t10", { seq: 11 }),
  ];
  const replies = repliesOf(threads, { here: null, now: NOW });
  equal(ids(replies.get("channel.a")), ["channel.a.t1", "channel.a.t3"]);
  equal(ids(replies.get("channel.a.t1")), ["channel.a.t1.t10"]);
});

test("the reply thread one is at shows however old it is", () => {
  const threads = [thread("channel.a.t2", { hours: 1000 })];
  equal(ids(repliesOf(threads, { here: "channel.a.t2", now: NOW }).get("channel.a")), ["channel.a.t2"]);
});

test("only the latest reply threads show, and every unread one", () => {
  const threads = Array.from({ length: 9 }, (_, n) => thread(`channel.a.t${n + 1}`, { seq: n + 2 }));
  threads.push(thread("channel.a.t99", { seq: 1, head: 3, read: 0 }));
  equal(repliesOf(threads, { here: null, now: NOW }).get("channel.a").length, 6);
});

test("of many threads the first show, and what is unread or open", () => {
  const threads = [
    thread("dm.a.b"), thread("dm.a.c"), thread("dm.a.d"), thread("dm.a.e", { head: 2, read: 1 }), thread("dm.a.f"),
  ];
  equal(ids(fewer(threads, 1, "dm.a.f")), ["dm.a.b", "dm.a.e", "dm.a.f"]);
});

test("the next thread after the last is the first, and the other way round", () => {
  const threads = [thread("dm.a.b"), thread("dm.a.c"), thread("dm.a.d")];
  equal(neighbour(threads, "dm.a.d", 1).id, "dm.a.b");
  equal(neighbour(threads, "dm.a.b", -1).id, "dm.a.d");
  equal(neighbour(threads, null, 1).id, "dm.a.b");
  equal(neighbour(threads, null, -1).id, "dm.a.d");
});

test("going on to what is wanted skips the others, and ends where there is none", () => {
  const threads = [thread("dm.a.b"), thread("dm.a.c", { head: 2, read: 0 }), thread("dm.a.d")];
  const unread = (it) => it.unread.value > 0;
  equal(neighbour(threads, "dm.a.d", 1, unread).id, "dm.a.c");
  equal(neighbour(threads, "dm.a.c", 1, unread), null);
  equal(neighbour([], null, 1), null);
});
