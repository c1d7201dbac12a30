import { equal, test } from "./harness.js";
import { deliveryOf, noteReceipts, readersOf } from "/static/core/delivery.js";
import { State } from "/static/core/state.js";

function state({ people = {}, delivered = {} } = {}) {
  const made = new State();
  const participants = Object.entries(people).map(([id, present]) => [id, { id, kind: "human", present }]);
  made.participants.value = new Map(participants);
  made.channels.value = new Map([["dev", { name: "dev", members: ["ann", "bob", "carol"] }]]);
  made.delivered.value = new Map(Object.entries(delivered));
  return made;
}

const message = (thread_id, seq = 10) => ({ thread_id, seq, sender_id: "ann" });

test("the readers of a thread are its members without the sender", () => {
  const all = state({ people: { ann: true, bob: true, dan: false } });
  equal(readersOf(all, "dm.ann.bob", "ann"), ["bob"]);
  equal(readersOf(all, "dm.ann.bob.t4", "ann"), ["bob"]);
  equal(readersOf(all, "channel.dev.t7", "ann"), ["bob", "carol"]);
  equal(readersOf(all, "broadcast", "ann"), ["bob", "dan"]);
  equal(readersOf(all, "channel.unknown", "ann"), []);
});

test("a message is stored until somebody has it", () => {
  const is = state({ people: { bob: true }, delivered: { bob: 9 } });
  equal(deliveryOf(is, message("dm.ann.bob")), { state: "stored", reached: [], waiting: ["bob"] });
});

test("a message is delivered when all have it who are here", () => {
  const is = state({ people: { bob: true, carol: false }, delivered: { bob: 10 } });
  equal(deliveryOf(is, message("channel.dev")), { state: "delivered", reached: ["bob"], waiting: ["carol"] });
});

test("somebody who is here and has it not keeps it stored", () => {
  const is = state({ people: { bob: true, carol: true }, delivered: { bob: 10 } });
  equal(deliveryOf(is, message("channel.dev")).state, "stored");
});

test("nobody to deliver to is not delivered", () => {
  equal(deliveryOf(state(), message("channel.unknown")).state, "stored");
});

test("who has a message has all before it, and receipts take nothing back", () => {
  const is = state({ people: { bob: true }, delivered: { carol: 90 } });
  noteReceipts(is, 50, [
    { participant: "bob", delivered: true },
    { participant: "carol", delivered: true },
    { participant: "dan", delivered: false },
  ]);
  equal(is.delivered.value, new Map([["carol", 90], ["bob", 50]]));
});
