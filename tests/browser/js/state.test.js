import { equal, ok, test } from "./harness.js";
import { State } from "/static/core/state.js";

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

/** So many messages in a few threads, as chance has it. */
function chatter(count) {
  const heads = new Map();
  return Array.from({ length: count }, (_, n) => {
    const thread = ["channel.general", "dm.ann.bob", "broadcast", "channel.general.t1"][Math.floor(Math.random() * 4)];
    heads.set(thread, (heads.get(thread) ?? 0) + 1);
    return message(n + 1, thread, heads.get(thread));
  });
}

test("events after a ready give the same as a ready that came after them", () => {
  for (let round = 0; round < 50; round++) {
    const all = chatter(30);
    const at = Math.floor(Math.random() * 30);
    const [state, fresh] = [new State(), new State()];
    state.ready(ready(all.slice(0, at)), HELLO);
    for (const each of all.slice(at)) state.event({ message: each });
    fresh.ready(ready(all), HELLO);
    equal(seen(state), seen(fresh), `after ${at} of ${all.map(({ thread_id }) => thread_id)}`);
  }
});

test("a message that comes twice is there once", () => {
  const state = new State();
  state.ready(ready([]), HELLO);
  const once = message(1, "dm.ann.bob", 1);
  state.event({ message: once });
  const before = seen(state);
  state.event({ message: once });
  equal(seen(state), before);
});

test("a resumed connection keeps what is known", () => {
  const state = new State();
  state.ready(ready([message(1, "dm.ann.bob", 1)]), HELLO);
  state.ready({ ...ready([]), resumed: true, cursor: 1 }, HELLO);
  equal(seen(state).threads.map(({ id }) => id), ["dm.ann.bob"]);
});

test("a fresh start forgets what is known", () => {
  const state = new State();
  state.ready(ready([message(1, "dm.ann.bob", 1)]), HELLO);
  state.ready(ready([]), HELLO);
  equal(seen(state), seen(new State()));
});

test("the thread of the latest message comes first", () => {
  const state = new State();
  state.ready(ready([message(1, "dm.ann.bob", 1), message(2, "broadcast", 1)]), HELLO);
  equal(state.byActivity.value.map(({ id }) => id), ["broadcast", "dm.ann.bob"]);
  state.event({ message: message(3, "dm.ann.bob", 2) });
  equal(state.byActivity.value.map(({ id }) => id), ["dm.ann.bob", "broadcast"]);
});

test("reading in another tab counts here", () => {
  const state = new State();
  state.ready(ready([message(1, "broadcast", 1), message(2, "broadcast", 2)]), HELLO);
  equal(state.unread.value, 2);
  state.signal({ type: "read", thread_id: "broadcast", data: { upto: 1 } });
  equal(state.unread.value, 1);
  state.signal({ type: "read", thread_id: "broadcast", data: { upto: 0 } });
  equal(state.unread.value, 2, "marked unread again");
});

test("what has been read here and the hub does not know yet stays read, whatever another tab has", () => {
  const state = new State();
  state.ready(ready([message(1, "broadcast", 1), message(2, "broadcast", 2)]), HELLO);
  const thread = state.thread("broadcast");
  thread.read.value = thread.marking = 2;
  state.signal({ type: "read", thread_id: "broadcast", data: { upto: 1 } });
  equal(state.unread.value, 0);
});

test("mentions are counted until they are read", () => {
  const state = new State();
  state.ready(ready([]), HELLO);
  state.event({ message: message(1, "channel.general", 1, { mentions: ["ann", "cyd"] }) });
  state.event({ message: message(2, "channel.general", 2, { mentions: ["cyd"] }) });
  equal([state.unread.value, state.unreadMentions.value], [2, 1]);
  state.signal({ type: "read", thread_id: "channel.general", data: { upto: 1 } });
  equal([state.unread.value, state.unreadMentions.value], [1, 0]);
});

test("people come and go, and who goes does nothing any more", () => {
  const state = new State();
  const bot = { id: "bot", kind: "agent", present: true };
  state.ready({ ...ready([]), participants: [bot] }, HELLO);
  state.signal({ type: "activity", sender: "bot", thread_id: "dm.ann.bot", data: { state: "thinking" } });
  state.signal({ type: "activity", sender: "bot", data: { state: "working" } });
  ok(state.busy.value.has("bot"));
  state.signal({ type: "presence", data: { online: [{ id: "cyd", kind: "human", present: true }], offline: ["bot", "nobody"] } });
  equal(state.participant("bot").present, false);
  equal(state.participant("cyd").present, true);
  equal(state.participant("nobody"), null);
  equal([state.busy.value.size, state.activities.value.size], [0, 0]);
});

test("what an agent does is known by thread, and since when", () => {
  const state = new State(() => 100_000);
  state.ready(ready([]), HELLO);
  state.signal({ type: "activity", sender: "bot", thread_id: "dm.ann.bot", data: { state: "calling", tool: "search" }, age_s: 12 });
  state.signal({ type: "activity", sender: "bot", thread_id: "broadcast", data: { state: "thinking" } });
  const doing = () => [...state.activities.value.get("bot")].map(([thread, { state, since }]) => [thread, state, since]);
  equal(doing(), [["dm.ann.bot", "calling", 88_000], ["broadcast", "thinking", 100_000]]);
  state.signal({ type: "activity", sender: "bot", thread_id: "dm.ann.bot", data: { state: "idle" } });
  equal(doing(), [["broadcast", "thinking", 100_000]]);
});

test("who was typing has stopped when it is said", () => {
  const state = new State();
  state.ready(ready([]), HELLO);
  state.signal({ type: "typing", sender: "bob", thread_id: "dm.ann.bob" });
  ok(state.typing.value.get("dm.ann.bob").has("bob"));
  state.event({ message: message(1, "dm.ann.bob", 1) });
  equal(state.typing.value.get("dm.ann.bob").has("bob"), false);
});

test("a signal of a kind that is not known yet is no trouble", () => {
  const state = new State();
  state.ready(ready([]), HELLO);
  state.signal({ type: "weather", data: { sunny: true } });
  equal(seen(state), seen(new State()));
});

test("replies are found by the message that they are under", () => {
  const state = new State();
  state.ready(ready([message(1, "channel.general", 1), message(2, "channel.general.t1", 1)]), HELLO);
  state.thread("channel.general.t9"); // opened, and nothing said there
  equal([...state.repliesIn("channel.general").keys()], [1]);
});

const WRITES = { type: "partial", sender: "bot", thread_id: "dm.ann.bot" };

/** A state in which the bot is about to say something, in step 2 of its turn. */
function writing(text = "Hel") {
  const state = new State(() => 5);
  state.ready(ready([message(1, "dm.ann.bot", 1)]), HELLO);
  state.signal({ ...WRITES, data: { turn: "bot-m1", step: 2, text, to: "ann" } });
  return state;
}

const written = (state) => [...state.partials.value.values()].map(({ turn, text }) => [turn, text]);

test("what an agent is about to say is known, and is no message", () => {
  const state = writing();
  const before = seen(state);
  state.signal({ ...WRITES, data: { turn: "bot-m1", step: 2, text: "Hello" } });
  equal([...state.partials.value.values()], [
    { turn: "bot-m1", sender: "bot", thread: "dm.ann.bot", step: 2, text: "Hello", at: 5 },
  ]);
  equal(seen(state), before);
  equal(before.head, 1);
});

test("the message itself takes the place of what was about to be said, wherever it stands", () => {
  const bots = { sender_id: "bot", sender_kind: "agent" };
  for (const thread of ["dm.ann.bot", "dm.ann.bot.t1"]) {
    const state = writing();
    state.event({ message: message(2, thread, 2, { ...bots, cause_id: "bot-m9" }) });
    equal(written(state), [["bot-m1", "Hel"]], "of another turn");
    state.event({ message: message(3, thread, 3, { ...bots, cause_id: "bot-m1" }) });
    equal(written(state), []);
  }
});

test("what an agent does not say after all is gone", () => {
  const does = (data) => ({ type: "activity", sender: "bot", thread_id: "dm.ann.bot", data });
  const ends = {
    idle: does({ state: "idle", turn: "bot-m1", step: 2 }),
    "the next step": does({ state: "thinking", turn: "bot-m1", step: 3 }),
    "the agent gone": { type: "presence", data: { online: [], offline: ["bot"] } },
  };
  for (const [how, signal] of Object.entries(ends)) {
    const state = writing();
    state.signal(does({ state: "calling", turn: "bot-m1", step: 2 }));
    state.signal(does({ state: "idle", turn: "bot-m7", step: 9 }));
    equal(written(state), [["bot-m1", "Hel"]]);
    state.signal(signal);
    equal(written(state), [], how);
  }
  const state = writing();
  state.ready({ ...ready([]), resumed: true, cursor: 1 }, HELLO);
  equal(written(state), [], "a new connection");
});

test("nobody is shown to say what belongs to another's turn, or no text", () => {
  const state = writing("Hel");
  state.signal({ ...WRITES, sender: "cyd", data: { turn: "bot-m1", step: 2, text: "I am bot" } });
  state.signal({ ...WRITES, data: { turn: "bot-m1", step: 2, text: { a: 1 } } });
  state.signal({ ...WRITES, thread_id: undefined, data: { turn: "bot-m2", step: 1, text: "x" } });
  state.signal({ ...WRITES, data: null });
  equal(written(state), [["bot-m1", "Hel"]]);
});
