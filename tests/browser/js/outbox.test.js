import { equal, eventually, ok, test } from "./harness.js";
import { Closed } from "/static/core/client.js";
import { Outbox } from "/static/core/outbox.js";
import { Storage } from "/static/core/storage.js";

const GENERAL = "channel.general";
let count = 0;

/** An outbox over a storage of its own; what it writes is answered by hand. */
function desk(storage = new Storage(`outbox-test-${count++}:`)) {
  const [writes, stored, shown] = [[], [], new Map()];
  const write = (name, args, cid) =>
    new Promise((resolve, reject) => writes.push({ name, args, cid, resolve, reject }));
  const outbox = new Outbox(storage, write, {
    changed: (thread, entries) => shown.set(thread, entries),
    stored: (entry, result, rest) => {
      stored.push([entry.text, result]);
      shown.set(entry.thread, rest);
    },
  });
  const say = (text, thread = GENERAL) =>
    outbox.say({ name: "send_text_message", args: { to: thread, text }, thread, text });
  const texts = () => writes.map(({ args }) => args.text);
  return { storage, outbox, writes, stored, shown, say, texts };
}

/** Answers each of `count` writes when it comes. */
async function answered(writes, count) {
  for (let n = 0; n < count; n++) {
    await eventually(() => writes[n]);
    writes[n].resolve({ id: `m${n + 1}` });
  }
}

const refusal = Object.assign(new Error("too long"), { code: "too_large" });

test("what is said shows at once, apart by thread, and is kept until it is stored", async () => {
  const { outbox, writes, shown, stored, storage, say, texts } = desk();
  for (const text of ["one", "two"]) say(text);
  say("there", "dm.ann.bob");
  equal(shown.get(GENERAL).map(({ text, state }) => [text, state]), [["one", "sending"], ["two", "sending"]]);
  equal(outbox.of("dm.ann.bob").map(({ text }) => text), ["there"]);
  equal(storage.keys().length, 3);
  await answered(writes, 3);
  equal(texts(), ["one", "there", "two"], "in a thread one after the other, as the hub may put off some");
  equal(new Set(writes.map(({ cid }) => cid)).size, 3);
  await eventually(() => stored.length === 3);
  equal(stored[0], ["one", { id: "m1" }]);
  equal([shown.get(GENERAL), storage.keys()], [[], []]);
});

test("what a page left behind is written by the next one under the same cid, in order", async () => {
  const first = desk();
  first.say("one");
  await eventually(() => Date.now() > first.outbox.of(GENERAL)[0].at);
  first.say("two");
  const second = desk(first.storage);
  second.outbox.restore();
  await answered(first.writes, 2);
  await answered(second.writes, 2);
  equal(second.writes.map(({ cid, args }) => [cid, args]), first.writes.map(({ cid, args }) => [cid, args]));
});

test("what was written when one left, or had lost the right to write, stays for the next time", async () => {
  for (const error of [new Error("left"), new Closed(4504, "the token was revoked")]) {
    const { writes, storage, shown, say } = desk();
    say("one");
    writes[0].reject(error);
    await Promise.resolve();
    equal([shown.get(GENERAL)[0].state, storage.keys().length], ["sending", 1]);
  }
});

test("what is refused holds up nothing, stays with the reason, and is tried again only when asked", async () => {
  const first = desk();
  for (const text of ["one", "two"]) first.say(text);
  first.writes[0].reject(refusal);
  await eventually(() => first.writes.length === 2);
  const one = ({ shown }) => shown.get(GENERAL).find(({ text }) => text === "one");
  const refused = () => one(first);
  equal([refused().state, refused().error], ["refused", "too long"]);
  first.writes[1].resolve({ id: "m1" });
  const second = desk(first.storage);
  second.outbox.restore();
  equal([second.texts().includes("one"), one(second).state], [false, "refused"]);
  first.outbox.again(refused());
  await eventually(() => first.writes.length === 3);
  ok(first.writes[2].cid !== first.writes[0].cid, "as a new write");
  equal(refused().state, "sending");
  first.outbox.drop(refused());
  equal([first.shown.get(GENERAL), first.storage.keys()], [[], []]);
});

test("what another tab discards is gone here, too, unless it is still being sent", async () => {
  const first = desk();
  for (const text of ["one", "two"]) first.say(text);
  first.writes[0].reject(refusal);
  await eventually(() => first.writes.length === 2);
  const second = desk(first.storage);
  second.outbox.restore();
  for (const { cid } of first.outbox.of(GENERAL)) {
    first.outbox.drop(first.outbox.entries.get(cid));
    window.dispatchEvent(new StorageEvent("storage", { key: first.storage.prefix + cid }));
  }
  equal(second.shown.get(GENERAL).map(({ text }) => text), ["two"]);
});

test("what others keep in the storage is not said", () => {
  const { storage } = desk();
  for (const [key, value] of [["odd", { text: "no cid" }], ["odder", 7], ["none", null]]) storage.set(key, value);
  const { outbox, writes } = desk(storage);
  outbox.restore();
  equal(writes, []);
});
