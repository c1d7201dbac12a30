import { equal, ok, test } from "./harness.js";
import { Control } from "/static/core/control.js";
import { State } from "/static/core/state.js";
import { changedNames, isRounded, seen } from "/static/features/control/arguments.js";
import { remaining } from "/static/features/control/remaining.js";
import { summed } from "/static/features/control/spending.js";

test("what was changed is named, and nothing in a text is hidden", () => {
  equal(changedNames({ a: 1, b: [1] }, { a: 2, b: [1], c: null }), ["a", "c"]);
  equal(seen("a\u202eb\u200bc\nd\té"), "a\\u202eb\\u200bc\nd\té");
});

test("numbers that a browser cannot tell exactly are noticed, however deep", () => {
  ok(isRounded(JSON.parse('{"a": [{"b": 12345678901234567890}]}')));
  equal([{ a: 9007199254740991 }, { a: 0.1 }, { a: "12345678901234567890" }, null].map(isRounded), [
    false, false, false, false,
  ]);
});

test("time that is left is told in steps that come rarely", () => {
  const minute = 60_000;
  equal(remaining(3 * 86_400_000).words, "3 days");
  equal(remaining(23.5 * 3_600_000), { words: "24 h", change: 0.5 * 3_600_000 });
  equal(remaining(14 * minute + 1), { words: "15 min", change: 1 });
  equal(remaining(80_000).words, "80 s");
  equal(remaining(400), { words: "1 s", change: 400 });
  equal(remaining(0).words, "0 s");
});

test("rows of several days become one for each agent, the dearest first", () => {
  const row = (day, agent, usd, turns) => ({ day, agent, thread_id: "t", sums: { turns, usd } });
  equal(summed([row("2", "a", 1, 1), row("2", "b", 5, 1), row("1", "a", 1, 2)], "agent"), [
    { id: "b", sums: { turns: 1, usd: 5 } },
    { id: "a", sums: { turns: 3, usd: 2 } },
  ]);
});

function control({ owner = true } = {}) {
  const state = new State();
  state.me.value = "ann";
  state.owner.value = owner;
  state.channels.value = new Map([["desk", { name: "desk", members: ["ann", "bot"], joined: true }]]);
  return state;
}

const approval = (id, more = {}) => ({ id, state: "pending", asked_at: id, agent: "bot", ...more });

test("an approval that was decided does not wait again, whatever comes late", () => {
  const state = control();
  state.signal({ type: "approval", data: approval("1") });
  state.signal({ type: "approval", data: approval("1", { state: "denied" }) });
  state.signal({ type: "approval", data: approval("1") });
  state.control.pending([approval("1"), approval("2")]);
  equal(state.control.waiting.value.map(({ id }) => id), ["2"]);
  state.control.pending([]);
  equal(state.control.waiting.value, []);
});

test("only what one may decide waits for one's word", () => {
  const state = control({ owner: false });
  for (const [id, more] of [["1", { approvers: ["ann"] }], ["2", { approvers: ["bob"] }], ["3", {}]]) {
    state.signal({ type: "approval", data: approval(id, more) });
  }
  equal(state.control.waiting.value.map(({ id }) => id), ["1"]);
});

test("a thread is held by stops of it, of its agents, and of everything", () => {
  const state = control();
  const stops = [
    { scope: "thread", target: "channel.desk" }, { scope: "agent", target: "bot" }, { scope: "all" },
    { scope: "agent", target: "other" }, { scope: "thread", target: "channel.desks" },
  ];
  state.signal({ type: "stops", data: { stops, breakers: [{ thread_id: "channel.desk" }] } });
  const held = state.control.holding("channel.desk");
  equal(held.stops, stops.slice(0, 3));
  equal(held.breakers.length, 1);
  equal(state.control.holding("channel.desk.t4").stops.length, 3, "replies there as well");
  equal(state.control.holding("dm.ann.bob").stops, [{ scope: "all" }]);
});

test("one speaks for an agent where it reads along, but to everybody only on purpose", () => {
  const state = control();
  state.signal({ type: "takeovers", data: { takeovers: [{ agent: "bot", by: "ann" }, { agent: "other", by: "bob" }] } });
  const { control: it } = state;
  equal(it.voiceIn("dm.bob.bot"), "bot");
  equal(it.voiceIn("dm.bob.other"), null);
  equal(it.voiceIn("broadcast"), null);
  equal(it.speechIn("channel.desk"), { on_behalf_of: "bot" });
  it.choose(it.voices, "channel.desk", null);
  it.choose(it.voices, "broadcast", "bot");
  equal(it.voiceIn("channel.desk"), null);
  equal(it.voiceIn("broadcast"), "bot");
  state.signal({ type: "takeovers", data: { takeovers: [] } });
  equal(it.voiceIn("broadcast"), null);
});

test("a way to reach who works holds for one message, and for work only", () => {
  const state = control();
  const { control: it } = state;
  it.choose(it.modes, "channel.desk", "interrupt");
  equal(it.speechIn("channel.desk"), {});
  state.signal({ type: "activity", sender: "bot", thread_id: "channel.desk", data: { state: "thinking" } });
  equal(it.speechIn("channel.desk"), { mode: "interrupt" });
  it.said("channel.desk");
  equal(it.speechIn("channel.desk"), {});
});

test("what reaches an agent that one speaks for goes into threads that are shown", () => {
  const state = control();
  const message = {
    id: "m1", seq: 1, tseq: 1, thread_id: "dm.bob.bot", sender_id: "bob", sender_kind: "human", content: "hi",
    sent_at: "2026-01-01T00:00:00Z",
  };
  const tell = () => state.signal({ type: "overheard", data: { agent: "bot", message } });
  tell();
  tell();
  equal(state.control.overheard.value.length, 1);
  equal(state.threads.value.size, 0);
  state.thread("dm.bob.bot");
  state.control.overheard.value = [];
  tell();
  equal(state.thread("dm.bob.bot").at(1).content, "hi");
});

test("what the hub does not let one ask is nothing", async () => {
  const it = new Control(control());
  const asked = [];
  await it.refresh({
    may: (name) => name === "list_stops",
    call: async (name) => (asked.push(name), { stops: [{ scope: "all" }] }),
  });
  equal(asked, ["list_stops"]);
  equal(it.stops.value, [{ scope: "all" }]);
});
