import { equal, ok, test } from "./harness.js";
import { State } from "/static/core/state.js";
import { activityWords } from "/static/parts/presence.js";

const HELLO = { network: "test", limits: {} };

function message(seq, thread, tseq, fields = {}) {
  return { id: `m${seq}`, seq, thread_id: thread, tseq, sender_id: "bob", sender_kind: "human", content: `${seq}`, ...fields };
}

/** What the hub says at the position of the last of `messages`. */
function ready(messages, { read = {}, ...fields } = {}) {
  const threads = new Map();
  for (const each of messages) threads.set(each.thread_id, [...(threads.get(each.thread_id) ?? []), each]);
  const summaries = [...threads].map(([id, all]) => ({
    id, head: all.at(-1).tseq, last_seq: all.at(-1).seq, read: read[id] ?? 0, messages: all,
  }));
  return {
    participant: "ann", resumed: false, cursor: messages.at(-1)?.seq ?? 0, operations: [],
    participants: [], channels: [], threads: summaries, ...fields,
  };
}

/** A state that has heard of these messages. */
function knowing(messages = [], fields = {}, now = undefined) {
  const state = new State(now);
  state.ready(ready(messages, fields), HELLO);
  return state;
}

/** What people see of a state. */
function seen(state) {
  return {
    head: state.head.value,
    unread: state.unread.value,
    mentions: state.unreadMentions.value,
    threads: state.byActivity.value.map((thread) => ({
      id: thread.id, head: thread.head.value, last: thread.lastSeq.value, unread: thread.unread.value,
      messages: [...thread.messages.values()].sort((a, b) => a.tseq - b.tseq).map(({ id }) => id),
    })),
  };
}

const order = (state) => seen(state).threads.map(({ id }) => id);

test("events after a ready give the same as a ready that came after them", () => {
  for (let round = 0; round < 50; round++) {
    const heads = new Map();
    const all = Array.from({ length: 30 }, (_, n) => {
      const thread = ["channel.general", "dm.ann.bob", "broadcast", "channel.general.t1"][Math.floor(Math.random() * 4)];
      heads.set(thread, (heads.get(thread) ?? 0) + 1);
      return message(n + 1, thread, heads.get(thread));
    });
    const at = Math.floor(Math.random() * 30);
    const state = knowing(all.slice(0, at));
    for (const each of all.slice(at)) state.event({ message: each });
    equal(seen(state), seen(knowing(all)), `after ${at} of ${all.map(({ thread_id }) => thread_id)}`);
    state.event({ message: all.at(-1) });
    equal(seen(state), seen(knowing(all)), "a message that comes twice is there once");
  }
});

test("a resumed connection keeps what is known, a fresh start forgets it", () => {
  const state = knowing([message(1, "dm.ann.bob", 1)]);
  state.ready({ ...ready([]), resumed: true, cursor: 1 }, HELLO);
  equal(order(state), ["dm.ann.bob"]);
  state.ready(ready([]), HELLO);
  equal(seen(state), seen(new State()));
});

test("the thread of the latest message comes first, replies are found by their message", () => {
  const state = knowing([message(1, "dm.ann.bob", 1), message(2, "broadcast", 1), message(3, "broadcast.t2", 1)]);
  equal(order(state), ["broadcast.t2", "broadcast", "dm.ann.bob"]);
  state.event({ message: message(4, "dm.ann.bob", 2) });
  equal(order(state)[0], "dm.ann.bob");
  state.thread("broadcast.t9"); // opened, and nothing said there
  equal([...state.repliesIn("broadcast").keys()], [2]);
});

test("reading in another tab counts here, but not against what was read here and is not told yet", () => {
  const state = knowing([message(1, "broadcast", 1), message(2, "broadcast", 2, { mentions: ["ann", "cyd"] })]);
  state.event({ message: message(3, "broadcast", 3, { mentions: ["cyd"] }) });
  const reads = (upto) => state.signal({ type: "read", thread_id: "broadcast", data: { upto } });
  const counts = () => [state.unread.value, state.unreadMentions.value];
  state.event({ message: message(4, "broadcast", 4, { mentions: ["ann"] }) });
  equal(counts(), [4, 1], "those that came with ready are not news");
  reads(4);
  equal(counts(), [0, 0]);
  reads(1);
  equal(counts(), [3, 1], "marked unread again");
  const thread = state.thread("broadcast");
  thread.read.value = thread.marking = 4;
  reads(1);
  equal(counts()[0], 0);
});

test("what the reader writes elsewhere is read, unless something before it is not", () => {
  const state = knowing([message(1, "broadcast", 1)], { read: { broadcast: 1 } });
  state.event({ message: message(2, "broadcast", 2, { sender_id: "ann" }) });
  equal(state.unread.value, 0);
  state.event({ message: message(3, "broadcast", 3) });
  state.event({ message: message(4, "broadcast", 4, { sender_id: "ann" }) });
  equal(state.unread.value, 2);
  const thread = state.thread("broadcast");
  thread.read.value = thread.marking = 4; // being sent: the hub takes that instead
  state.event({ message: message(5, "broadcast", 5, { sender_id: "ann" }) });
  equal(state.unread.value, 1);
});

test("people come and go, and who goes does nothing any more", () => {
  const state = knowing([], { participants: [{ id: "bot", kind: "agent", present: true }] });
  state.signal({ type: "activity", sender: "bot", thread_id: "dm.ann.bot", data: { state: "thinking" } });
  state.signal({ type: "activity", sender: "bot", data: { state: "working" } });
  ok(state.busy.value.has("bot"));
  state.signal({ type: "presence", data: { online: [{ id: "cyd", kind: "human", present: true }], offline: ["bot", "nobody"] } });
  equal(["bot", "cyd"].map((id) => state.participant(id).present), [false, true]);
  equal([state.participant("nobody"), state.busy.value.size, state.activities.value.size], [null, 0, 0]);
});

test("what an agent does is known by thread, and since when", () => {
  const state = knowing([], {}, () => 100_000);
  const does = (thread_id, data, more) => state.signal({ type: "activity", sender: "bot", thread_id, data, ...more });
  const doing = () => [...state.activities.value.get("bot")].map(([thread, { state, since }]) => [thread, state, since]);
  does("dm.ann.bot", { state: "calling", tool: "search" }, { age_s: 12 });
  does("broadcast", { state: "thinking" });
  equal(doing(), [["dm.ann.bot", "calling", 88_000], ["broadcast", "thinking", 100_000]]);
  does("dm.ann.bot", { state: "idle" });
  equal(doing(), [["broadcast", "thinking", 100_000]]);
});

test("an agent can say in any form what it does", () => {
  const state = knowing();
  const odd = { toString: 1 };
  const doing = () => state.activities.value.get("bot")?.get("broadcast") ?? null;
  for (const [data, expected] of [
    ["thinking", { state: "thinking" }],
    [{ state: "calling", tool: "search", step: 2 }, { state: "calling", tool: "search", step: 2 }],
    [{ state: "calling", tool: odd, for: [], turn: odd, step: odd }, { state: "calling" }],
    [{ state: odd }, { state: "working" }], [[1], null], [true, { state: "working" }],
    [null, null], [{}, null], [undefined, null], [{ state: null }, null], ["", null],
  ]) {
    state.signal({ type: "activity", sender: "bot", thread_id: "broadcast", data });
    const { since, ...said } = doing() ?? {};
    equal(doing() && said, expected, JSON.stringify(data));
    state.signal({ type: "activity", sender: "bot", data });
    equal(state.busy.value.has("bot"), expected !== null, JSON.stringify(data));
    state.signal({ type: "partial", sender: "bot", thread_id: "broadcast", data });
  }
  state.signal({ type: "partial", sender: "bot", thread_id: "broadcast", data: { turn: odd, step: 1, text: "a" } });
  equal(state.partials.value.size, 0);
  equal(activityWords({ state: "__proto__" }), "__proto__");
});

test("who was typing has stopped when it is said; a signal that is not known yet is no trouble", () => {
  const state = knowing();
  state.signal({ type: "typing", sender: "bob", thread_id: "dm.ann.bob" });
  const types = () => state.typing.value.get("dm.ann.bob").has("bob");
  equal(types(), true);
  state.event({ message: message(1, "dm.ann.bob", 1) });
  equal(types(), false);
  const before = seen(state);
  state.signal({ type: "weather", data: { sunny: true } });
  equal(seen(state), before);
});

const WRITES = { type: "partial", sender: "bot", thread_id: "dm.ann.bot" };

/** A state in which the bot is about to say "Hel", in step 2 of its turn. */
function writing() {
  const state = knowing([message(1, "dm.ann.bot", 1)], {}, () => 5);
  state.signal({ ...WRITES, data: { turn: "bot-m1", step: 2, text: "Hel", to: "ann" } });
  return state;
}

const written = (state) => [...state.partials.value.values()].map(({ turn, text }) => [turn, text]);
const HEL = [["bot-m1", "Hel"]];

test("what an agent is about to say is known, is no message, and belongs to its own turn", () => {
  const state = writing();
  const before = seen(state);
  state.signal({ ...WRITES, sender: "cyd", data: { turn: "bot-m1", step: 2, text: "I am bot" } });
  state.signal({ ...WRITES, data: { turn: "bot-m1", step: 2, text: { a: 1 } } });
  state.signal({ ...WRITES, thread_id: undefined, data: { turn: "bot-m2", step: 1, text: "x" } });
  state.signal({ ...WRITES, data: null });
  equal(written(state), HEL);
  state.signal({ ...WRITES, data: { turn: "bot-m1", step: 2, text: "Hello" } });
  const partial = { turn: "bot-m1", sender: "bot", thread: "dm.ann.bot", step: 2, text: "Hello", at: 5 };
  equal([...state.partials.value.values()], [partial]);
  equal([seen(state), before.head], [before, 1]);
});

test("the message itself takes the place of what was about to be said, wherever it stands", () => {
  const bots = { sender_id: "bot", sender_kind: "agent" };
  for (const thread of ["dm.ann.bot", "dm.ann.bot.t1"]) {
    const state = writing();
    state.event({ message: message(2, thread, 2, { ...bots, cause_id: "bot-m9" }) });
    equal(written(state), HEL, "of another turn");
    state.event({ message: message(3, thread, 3, { ...bots, cause_id: "bot-m1" }) });
    equal(written(state), []);
  }
});

test("what an agent does not say after all is gone", () => {
  const does = (data) => ({ type: "activity", sender: "bot", thread_id: "dm.ann.bot", data });
  for (const signal of [
    does({ state: "idle", turn: "bot-m1", step: 2 }),
    does({ state: "thinking", turn: "bot-m1", step: 3 }),
    { type: "presence", data: { online: [], offline: ["bot"] } },
  ]) {
    const state = writing();
    state.signal(does({ state: "calling", turn: "bot-m1", step: 2 }));
    state.signal(does({ state: "idle", turn: "bot-m7", step: 9 }));
    equal(written(state), HEL);
    state.signal(signal);
    equal(written(state), [], JSON.stringify(signal));
  }
  const state = writing();
  state.ready({ ...ready([]), resumed: true, cursor: 1 }, HELLO);
  equal(written(state), [], "a new connection");
});
