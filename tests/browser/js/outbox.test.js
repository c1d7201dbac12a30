import { equal, eventually, ok, test } from "./harness.js";
import { Outbox } from "/static/core/outbox.js";
import { Storage } from "/static/core/storage.js";

let count = 0;

/** An outbox over a storage of its own; what it writes is answered by hand. */
function desk(storage = new Storage(`outbox-test-${count++}:`)) {
  const writes = [];
  const stored = [];
  const shown = new Map();
  const write = (name, args, cid) =>
    new Promise((resolve, reject) => writes.push({ name, args, cid, resolve, reject }));
  const outbox = new Outbox(storage, write, {
    changed: (thread, entries) => shown.set(thread, entries),
    stored: (entry, result, rest) => {
      stored.push([entry.text, result]);
      shown.set(entry.thread, rest);
    },
  });
  return { storage, outbox, writes, stored, shown };
}

const words = (text, thread = "channel.general") => ({
  name: "send_text_message", args: { to: thread, text }, thread, text,
});

/** Answers each of `count` writes when it comes. */
async function answered(writes, count) {
  for (let n = 0; n < count; n++) {
    await eventually(() => writes[n]);
    writes[n].resolve({ id: `m${n + 1}` });
  }
}

const refusal = Object.assign(new Error("too long"), { code: "too_large" });

test("what is said is shown at once and written under a cid of its own", async () => {
  const { outbox, writes, shown } = desk();
  outbox.say(words("one"));
  outbox.say(words("two"));
  equal(shown.get("channel.general").map(({ text, state }) => [text, state]), [["one", "sending"], ["two", "sending"]]);
  await answered(writes, 2);
  equal(writes.map(({ args }) => args.text), ["one", "two"]);
  ok(writes[0].cid !== writes[1].cid);
});

test("what is said in a thread is written one after the other, as the hub may put off some of it", async () => {
  const { outbox, writes } = desk();
  for (const text of ["one", "two", "three"]) outbox.say(words(text));
  outbox.say(words("elsewhere", "dm.ann.bob"));
  equal(writes.map(({ args }) => args.text), ["one", "elsewhere"]);
  writes[0].reject(refusal);
  await eventually(() => writes.length === 3);
  equal(writes[2].args.text, "two", "what is refused holds up nothing");
  writes[2].resolve({ id: "m1" });
  await eventually(() => writes.length === 4);
  equal(writes[3].args.text, "three");
});

test("threads are shown apart", () => {
  const { outbox, shown } = desk();
  outbox.say(words("here"));
  outbox.say(words("there", "dm.ann.bob"));
  equal(shown.get("channel.general").length, 1);
  equal(outbox.of("dm.ann.bob").map(({ text }) => text), ["there"]);
});

test("what is stored is told and kept no longer", async () => {
  const { outbox, writes, stored, shown, storage } = desk();
  outbox.say(words("one"));
  writes[0].resolve({ id: "m1" });
  await eventually(() => stored.length);
  equal(stored, [["one", { id: "m1" }]]);
  equal(shown.get("channel.general"), []);
  equal(storage.keys(), []);
});

test("what a page left behind is written by the next one under the same cid, in order", async () => {
  const first = desk();
  first.outbox.say(words("one"));
  await eventually(() => Date.now() > first.outbox.of("channel.general")[0].at);
  first.outbox.say(words("two"));
  const second = desk(first.storage);
  second.outbox.restore();
  await answered(first.writes, 2);
  await answered(second.writes, 2);
  equal(second.writes.map(({ cid, args }) => [cid, args]), first.writes.map(({ cid, args }) => [cid, args]));
});

test("what was written when one left stays for the next time", async () => {
  const { outbox, writes, storage, shown } = desk();
  outbox.say(words("one"));
  writes[0].reject(new Error("left"));
  await Promise.resolve();
  equal(shown.get("channel.general")[0].state, "sending");
  equal(storage.keys().length, 1);
});

test("what is refused stays, with the reason, and is not written again by itself", async () => {
  const first = desk();
  first.outbox.say(words("one"));
  first.writes[0].reject(refusal);
  await eventually(() => first.shown.get("channel.general")[0].state === "refused");
  equal(first.shown.get("channel.general")[0].error, "too long");
  const second = desk(first.storage);
  second.outbox.restore();
  equal(second.writes, []);
  equal(second.shown.get("channel.general")[0].state, "refused");
});

test("a refused entry can be tried again as a new write, or dropped", async () => {
  const { outbox, writes, shown, storage } = desk();
  outbox.say(words("one"));
  writes[0].reject(refusal);
  await eventually(() => shown.get("channel.general")[0].state === "refused");
  outbox.again(shown.get("channel.general")[0]);
  await eventually(() => writes.length === 2);
  ok(writes[1].cid !== writes[0].cid);
  equal(shown.get("channel.general").map(({ state }) => state), ["sending"]);
  outbox.drop(shown.get("channel.general")[0]);
  equal(shown.get("channel.general"), []);
  equal(storage.keys(), []);
});

test("what others keep in the storage is not said", () => {
  const { storage } = desk();
  storage.set("odd", { text: "no cid" });
  storage.set("odder", 7);
  storage.set("none", null);
  const { outbox, writes } = desk(storage);
  outbox.restore();
  equal(writes, []);
});
