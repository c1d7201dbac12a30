import { equal, ok, test } from "./harness.js";
import { introOf, isNamed } from "/static/features/conversation/grouping.js";
import { readBy } from "/static/features/conversation/reading.js";

const at = (minutes, more = {}) => ({
  sender_id: "bob", sender_kind: "human", sent_at: new Date(2026, 4, 4, 12, minutes).toISOString(), ...more,
});

test("messages of one sender in a row are told by one name", () => {
  equal(introOf(at(0), at(4)), { day: null, named: false });
});

test("another sender, five minutes, a quote and a notice are named anew", () => {
  ok(introOf(at(0), at(1, { sender_id: "ann" })).named);
  ok(introOf(at(0), at(5)).named);
  ok(introOf(at(0), at(1, { quote: { message_id: "m1", text: "x" } })).named);
  ok(introOf(at(0, { sender_kind: "system" }), at(1, { sender_kind: "system" })).named);
});

test("the first message and the first of a day say which day it is", () => {
  const midnight = at(0, { sent_at: new Date(2026, 4, 5, 0, 0).toISOString() });
  const before = at(0, { sent_at: new Date(2026, 4, 4, 23, 59).toISOString() });
  equal(introOf(before, midnight), { day: midnight.sent_at, named: true });
  equal(introOf(null, at(0), true), { day: at(0).sent_at, named: true });
});

test("without the message above nothing is said of the day", () => {
  equal(introOf(null, at(0), false), { day: null, named: true });
});

test("what is on its way continues what one has just said", () => {
  const entry = { at: Date.parse(at(1).sent_at), args: {} };
  equal(isNamed(at(0), entry, "bob"), false);
  equal(isNamed(at(0), entry, "ann"), true);
  equal(isNamed(null, entry, "bob"), true);
  equal(isNamed(at(0), { ...entry, at: entry.at + 600_000 }, "bob"), true);
});

test("what follows on what was read is read when it is seen", () => {
  equal(readBy({ from: 1, to: 8, read: 0, head: 20 }), 8);
  equal(readBy({ from: 5, to: 8, read: 6, head: 20 }), 8);
  equal(readBy({ from: 7, to: 8, read: 6, head: 20 }), 8);
});

test("a jump over unread messages does not make them read", () => {
  equal(readBy({ from: 100, to: 108, read: 6, head: 200 }), null);
});

test("who has gone to the end has read all", () => {
  equal(readBy({ from: 190, to: 200, read: 6, head: 200 }), 200);
});

test("the mark never goes back by reading", () => {
  equal(readBy({ from: 1, to: 8, read: 8, head: 20 }), null);
  equal(readBy({ from: 1, to: 8, read: 12, head: 20 }), null);
});
