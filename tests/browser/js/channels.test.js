import { State } from "/static/core/state.js";
import { equal, test } from "./harness.js";

function state() {
  const made = new State();
  made.me.value = "ann";
  const channels = [{ name: "general", description: "", members: ["ann", "bob"], joined: true }];
  made.channels.value = new Map(channels.map((channel) => [channel.name, channel]));
  return made;
}

const told = (name, ...members) => ({ type: "channel", sender: "hub", data: { name, description: "", members } });

test("a channel that others have made is known, and not joined", () => {
  const it = state();
  it.signal(told("plans", "bob"));
  const expected = { name: "plans", description: "", members: ["bob"], joined: false };
  equal(it.channels.value.get("plans"), expected);
  equal([...it.channels.value.keys()], ["general", "plans"]);
});

test("who is among the members has joined", () => {
  const it = state();
  it.signal(told("plans", "ann", "bob"));
  equal(it.channels.value.get("plans").joined, true);
  it.signal(told("plans", "bob"));
  equal(it.channels.value.get("plans").joined, false);
});

test("news of a channel is another map for those who look at channels", () => {
  const it = state();
  const before = it.channels.value;
  it.signal(told("general", "ann"));
  equal(before.get("general").members, ["ann", "bob"]);
  equal(it.channels.value.get("general").members, ["ann"]);
});
