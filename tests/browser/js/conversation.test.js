import { equal, ok, test } from "./harness.js";
import { introOf, isNamed } from "/static/features/conversation/grouping.js";
import { readBy } from "/static/features/conversation/reading.js";

const at = (minutes, more = {}) => ({
  sender_id: "bob", sender_kind: "human", sent_at: new Date(2026, 4, 4, 12, minutes).toISOString(), ...more,
});

test("messages of one sender in a row are told by one name, what is another thing is named anew", () => {
  equal(introOf(at(0), at(4)), { day: null, named: false });
  ok(introOf(at(0), at(1, { sender_id: "ann" })).named);
  ok(introOf(at(0), at(5)).named);
  ok(introOf(at(0), at(1, { quote: { message_id: "m1", text: "x" } })).named);
  ok(introOf(at(0, { sender_kind: "system" }), at(1, { sender_kind: "system" })).named);
});

test("the first message and the first of a day say which day it is, if that is known", () => {
  const midnight = at(0, { sent_at: new Date(2026, 4, 5, 0, 0).toISOString() });
  const before = at(0, { sent_at: new Date(2026, 4, 4, 23, 59).toISOString() });
  equal(introOf(before, midnight), { day: midnight.sent_at, named: true });
  equal(introOf(null, at(0), true), { day: at(0).sent_at, named: true });
  equal(introOf(null, at(0), false), { day: null, named: true });
});

test("what is on its way continues what one has just said", () => {
  const entry = { at: Date.parse(at(1).sent_at), args: {} };
  const late = { ...entry, at: entry.at + 600_000 };
  equal([isNamed(at(0), entry, "bob"), isNamed(at(0), entry, "ann")], [false, true]);
  equal([isNamed(null, entry, "bob"), isNamed(at(0), late, "bob")], [true, true]);
});

test("what follows on what was read is read when it is seen, a jump marks nothing, the end everything", () => {
  for (const [seen, mark] of [
    [{ from: 1, to: 8, read: 0, head: 20 }, 8],
    [{ from: 5, to: 8, read: 6, head: 20 }, 8],
    [{ from: 7, to: 8, read: 6, head: 20 }, 8],
    [{ from: 100, to: 108, read: 6, head: 200 }, null],
    [{ from: 190, to: 200, read: 6, head: 200 }, 200],
    [{ from: 1, to: 8, read: 8, head: 20 }, null],
    [{ from: 1, to: 8, read: 12, head: 20 }, null],
  ]) equal(readBy(seen), mark, JSON.stringify(seen));
});
