import { called, idFor } from "/static/core/names.js";
import { State } from "/static/core/state.js";
import { hueOf, initialsOf } from "/static/parts/avatar.js";
import { activityOf, presenceOf } from "/static/parts/presence.js";
import { parted, peopleOf } from "/static/features/people/order.js";
import { equal, ok, test } from "./harness.js";

/** A state in which scout is an agent that is here. */
function state() {
  const made = new State(() => 100_000);
  made.on_presence({ data: { online: [{ id: "scout", kind: "agent", present: true }], offline: [] } });
  return made;
}

test("somebody is away, here, or at work", () => {
  const it = state();
  equal(presenceOf(it, "nobody"), "away");
  equal(presenceOf(it, "scout"), "here");
  it.on_activity({ sender: "scout", thread_id: "broadcast", data: { state: "thinking" } });
  equal(presenceOf(it, "scout"), "busy");
  it.on_activity({ sender: "scout", thread_id: "broadcast", data: { state: "idle" } });
  equal(presenceOf(it, "scout"), "here");
  it.on_presence({ data: { online: [], offline: ["scout"] } });
  equal(presenceOf(it, "scout"), "away");
});

test("what an agent does in this thread goes before what it does in others", () => {
  const it = state();
  it.on_activity({ sender: "scout", thread_id: "channel.a", data: { state: "thinking" }, age_s: 12 });
  it.on_activity({ sender: "scout", thread_id: "channel.b", data: { state: "calling", tool: "search" } });
  equal(activityOf(it, "scout", "channel.b").tool, "search");
  equal(activityOf(it, "scout"), { state: "thinking", since: 88_000, thread: "channel.a" });
});

test("work that one may not read about is work elsewhere", () => {
  const it = state();
  equal(activityOf(it, "scout"), null);
  it.on_activity({ sender: "scout", thread_id: null, data: { state: "working" } });
  equal(activityOf(it, "scout"), { state: "elsewhere", thread: null });
});

test("agents come first, then people, then services; people who are away are folded", () => {
  const all = [
    { id: "s", kind: "service", present: true }, { id: "b", kind: "human", present: false },
    { id: "a", kind: "human", present: true }, { id: "z", kind: "agent", present: false }, { id: "me", kind: "human" },
  ];
  equal(peopleOf(all, "me").map(({ id }) => id), ["z", "a", "b", "s"]);
  const { listed, away } = parted(peopleOf(all, "me"));
  equal([listed.map(({ id }) => id), away.map(({ id }) => id)], [["z", "a", "s"], ["b"]]);
});

test("a name has initials, and always the same of eight colours", () => {
  equal(["calculator", "big-red-dog", "x", "__", "Jürgen Müller"].map(initialsOf), ["CA", "BR", "X", "__", "JM"]);
  equal(hueOf("ann"), hueOf("ann"));
  const hues = new Set(Array.from({ length: 200 }, (_, n) => hueOf(`agent-${n}`)));
  equal([...hues].sort(), [0, 1, 2, 3, 4, 5, 6, 7]);
});

test("a name that cannot be an id has one of its own, always the same", () => {
  equal(["ann", " Ann_2 ", "Jürgen Müller", "Søren Åß", " "].map(idFor), ["ann", "Ann_2", "jurgen-muller", "s-ren-ass", ""]);
  ok(/^person-[a-z0-9]+$/.test(idFor("张伟")));
  equal(idFor("张伟"), idFor("张伟 "));
});

test("who has a name is called by it, with the id where another could be meant", () => {
  const card = (name) => ({ card: { name } });
  const of = (...all) => Object.fromEntries(called(all));
  equal(of({ id: "jm", ...card("Jürgen Müller") }, { id: "ann" }), { jm: "Jürgen Müller" });
  equal(of({ id: "eve", ...card("Ann") }, { id: "ann", card: {} }), { eve: "Ann (eve)" });
  equal(of({ id: "a", ...card("Jo") }, { id: "b", ...card("J o") }), { a: "Jo (a)", b: "J o (b)" });
  equal(of({ id: "jo", ...card("Jo") }), { jo: "Jo" });
});
