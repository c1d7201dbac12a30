import { Thread } from "/static/core/thread.js";
import { fewer, groupsOf, neighbour, repliesOf } from "/static/features/threads/groups.js";
import { equal, test } from "./harness.js";

const NOW = Date.parse("2026-01-02T12:00:00Z");
const NOBODY = { joined: new Set(), here: null, drafts: new Set(), me: "ann" };
const NONE = new Set();
const ids = (threads) => threads.map((thread) => thread.id);

/** A thread with `head` messages of which the first `read` were read; the last was sent `hours` ago. */
function thread(id, { head = 1, read = head, seq = head, hours = 1 } = {}) {
  const made = new Thread(id);
  const sent_at = new Date(NOW - hours * 3600_000).toISOString();
  made.summarise({ head, last_seq: seq, read, messages: head ? [{ seq, tseq: head, sent_at, id: `m${seq}` }] : [] });
  return made;
}

test("channels one is in come by name, and one that was left while it is open", () => {
  const threads = ["channel.b", "channel.a", "channel.c"].map((id) => thread(id));
  const joined = new Set(["a", "b"]);
  equal(ids(groupsOf(threads, { ...NOBODY, joined }).get("channels")), ["channel.a", "channel.b"]);
  equal(ids(groupsOf([thread("channel.old")], { ...NOBODY, here: "channel.old" }).get("channels")), ["channel.old"]);
});

test("one's own direct threads come by activity, empty ones first while they are open or drafted", () => {
  const threads = [
    thread("dm.ann.bob", { seq: 3 }), thread("dm.ann.cyd", { seq: 9 }), thread("dm.ann.dan", { head: 0 }),
    thread("dm.bob.cyd"),
  ];
  const direct = (more) => ids(groupsOf(threads, { ...NOBODY, ...more }).get("direct"));
  equal(direct({}), ["dm.ann.cyd", "dm.ann.bob"]);
  const all = ["dm.ann.dan", "dm.ann.cyd", "dm.ann.bob"];
  equal([direct({ here: "dm.ann.dan" }), direct({ drafts: new Set(["dm.ann.dan"]) })], [all, all]);
});

test("broadcasts and mods have groups of their own", () => {
  const groups = groupsOf([thread("broadcast"), thread("mod.tasks")], NOBODY);
  equal([ids(groups.get("everyone")), ids(groups.get("mods"))], [["broadcast"], ["mod.tasks"]]);
});

test("reply threads hang under their parents: unread ones, a few that were active lately, the open one", () => {
  const threads = [
    thread("channel.a"),
    thread("channel.a.t1", { seq: 10 }),
    thread("channel.a.t2", { seq: 4, hours: 100 }),
    thread("channel.a.t3", { seq: 5, hours: 100, head: 2, read: 1 }),
    thread("channel.a.t1.t10", { seq: 11 }),
  ];
  const replies = repliesOf(threads, { here: null, now: NOW, drafts: NONE });
  equal(ids(replies.get("channel.a")), ["channel.a.t1", "channel.a.t3"]);
  equal(ids(replies.get("channel.a.t1")), ["channel.a.t1.t10"]);
  const old = [thread("channel.a.t2", { hours: 1000 })];
  equal(ids(repliesOf(old, { here: "channel.a.t2", now: NOW, drafts: NONE }).get("channel.a")), ["channel.a.t2"]);
  const many = Array.from({ length: 9 }, (_, n) => thread(`channel.a.t${n + 1}`, { seq: n + 2 }));
  many.push(thread("channel.a.t99", { seq: 1, head: 3, read: 0 }));
  equal(repliesOf(many, { here: null, now: NOW, drafts: NONE }).get("channel.a").length, 6);
});

test("replies with a draft show, also before the first one is sent", () => {
  const threads = [thread("channel.a.t1", { head: 0 }), thread("channel.a.t2", { hours: 100 }), thread("channel.a.t3", { head: 0 })];
  const drafts = new Set(["channel.a.t1", "channel.a.t2"]);
  equal(ids(repliesOf(threads, { here: null, now: NOW, drafts }).get("channel.a")).sort(), [...drafts]);
});

test("of many threads the first show, and what is unread or open", () => {
  const threads = ["b", "c", "d", "e", "f"].map((name) => thread(`dm.a.${name}`, name === "e" ? { head: 2, read: 1 } : {}));
  equal(ids(fewer(threads, 1, "dm.a.f")), ["dm.a.b", "dm.a.e", "dm.a.f"]);
});

test("one goes round and round, and on to what is wanted", () => {
  const threads = [thread("b"), thread("c", { head: 2, read: 0 }), thread("d")];
  const unread = (it) => it.unread.value > 0;
  const to = (from, step, wanted) => neighbour(threads, from, step, wanted)?.id ?? null;
  equal([to("d", 1), to("b", -1), to(null, 1), to(null, -1)], ["b", "d", "b", "d"]);
  equal([to("d", 1, unread), to("c", 1, unread), neighbour([], null, 1)], ["c", null, null]);
});
