import { equal, ok, test } from "./harness.js";
import { agentOf, firstWords, textOf, turnOf, wokenBy } from "/static/core/messages.js";
import { count, dollars } from "/static/core/numbers.js";
import { State } from "/static/core/state.js";
import { factsOf } from "/static/features/turns/facts.js";
import { filling, pretty, stepNames, timeline, tookMs, totals } from "/static/features/turns/record.js";
import { words } from "/static/features/turns/texts.js";

const START = "2026-01-02T03:04:05Z";
const after = (ms) => new Date(Date.parse(START) + ms).toISOString();

function turn(steps, more = {}) {
  const start = { id: "bot-m1", model: "small", messages: ["m1"], tools: [] };
  return { start, started_at: START, ended_at: after(1000), end: { outcome: "finished" }, steps, ...more };
}

const short = ({ rows }) => rows.map(({ kind, start, end }) => [kind, start, end]);

test("a turn's model calls and tool calls stand at their times", () => {
  const call = { id: "1", name: "send", at_ms: 700, duration_ms: 20 };
  const steps = [
    { n: 1, at_ms: 10, duration_ms: 600, calls: [call] },
    { n: 2, at_ms: 800, duration_ms: 300, calls: [] },
  ];
  const found = timeline(turn(steps), 0);
  equal(short(found), [["model", 10, 610], ["tool", 700, 720], ["model", 800, 1100]]);
  equal(found.total, 1100);
});

test("records without times are taken to be one after the other, a call that never ran has no bar", () => {
  const call = { id: "1", name: "a", duration_ms: 5 };
  const steps = [{ n: 1, duration_ms: 100, calls: [call, { id: "2", name: "finish" }] }, { n: 2, duration_ms: 50, calls: [] }];
  equal(short(timeline(turn(steps), 0)), [
    ["model", 0, 100], ["tool", 100, 105], ["tool", null, null], ["model", 105, 155],
  ]);
});

test("the wait for an approval is part of where the time went", () => {
  const steps = [{ n: 1, at_ms: 0, duration_ms: 500, calls: [{ id: "1", name: "send", at_ms: 500, duration_ms: 100 }] }];
  const found = timeline(turn(steps, { ended_at: after(60_600) }), 0);
  equal(short(found), [["model", 0, 500], ["tool", 500, 600], ["paused", null, 60_000]]);
  equal(found.total, 600);
});

test("a running turn lasts until now, one without steps has some width", () => {
  equal(timeline(turn([]), 0), { rows: [], total: 1 });
  const running = turn([{ n: 1, at_ms: 0, duration_ms: 100, calls: [] }], { end: undefined });
  const found = timeline(running, Date.parse(after(900)));
  equal(short(found), [["model", 0, 100], ["rest", 100, null]]);
  equal(found.total, 900);
});

test("a handler's calls lie within its run", () => {
  const start = { id: "bot-m1", messages: ["m1"], tools: [] };
  const steps = [{ n: 1, at_ms: 0, duration_ms: 50, calls: [{ id: "1", name: "a", duration_ms: 5 }] }];
  equal(short(timeline(turn(steps, { start }), 0)), [["handler", 0, 50], ["tool", 0, 5]]);
});

test("what a turn came to is summed over its steps", () => {
  const bad = { id: "1", name: "x", error: "unknown_tool" };
  const steps = [
    { n: 1, calls: [bad], tokens_in: 10, tokens_out: 1, cost_usd: 0.25 },
    { n: 2, calls: [{ id: "2", name: "y" }], tokens_in: 20, tokens_out: 2 },
  ];
  const sum = { steps: 2, calls: 2, errors: 1, tokensIn: 30, tokensOut: 3, cost: 0.25 };
  equal(totals(turn(steps)), sum);
  equal(totals(turn([])).cost, null);
});

test("how long a turn took is known when it has ended; arguments are shown over several lines", () => {
  equal([tookMs(turn([])), tookMs(turn([], { ended_at: undefined }))], [1000, null]);
  equal([{ a: [1] }, "{broken", undefined].map(pretty), ['{\n  "a": [\n    1\n  ]\n}', "{broken", "null"]);
});

test("a message's turn is the cause that is the sender's own", () => {
  const message = { sender_id: "bot-2", sender_kind: "agent", content: "", cause_id: "bot-2-m42" };
  equal(turnOf(message), "bot-2-m42");
  equal(turnOf({ ...message, cause_id: "m42" }), null);
  equal(turnOf({ ...message, cause_id: undefined }), null);
  equal([agentOf("bot-2-m42"), wokenBy("bot-2-m42")], ["bot-2", "m42"]);
  equal([agentOf("m42"), wokenBy("m42")], [null, null]);
  const notice = { sender_id: "hub", sender_kind: "system", content: { turn: "bot-m1" } };
  equal(turnOf(notice), "bot-m1");
  equal(turnOf({ ...notice, content: "hello" }), null);
});

test("a message reads as text, and begins with its first words", () => {
  equal(textOf({ content: { a: 1 } }), '{"a":1}');
  equal(textOf({ content: { a: 1 }, text_representation: "one" }), "one");
  equal(firstWords({ content: "**Hello**\n\n- a\u202eb" }, 40), "Hello - a\\u202eb");
  equal(firstWords({ content: "Is **Jupiter**, or *`Io`*? 2*3 of `send_text_message`: [see](https://a.example)" }, 80),
    "Is Jupiter, or Io? 2*3 of send_text_message: see");
  equal(firstWords({ content: "## So far\n> quoted\n\n| a | b |\n|---|--:|\n| 1 | 2 |" }, 80), "So far quoted | a | b | | 1 | 2 |");
  equal(firstWords({ content: "one two three" }, 8), "one two…");
});

test("dollars have digits that say something", () => {
  const digits = (usd) => dollars(usd).replace(/[^\d.,]/g, "");
  const said = ["1,234.50", "0.50", "0.0042", "0.00000081", "0.00"];
  equal([1234.5, 0.5, 0.0042, 0.00000081, 0].map(digits), said);
  equal(dollars(null), "");
  equal(count(12345), "12,345");
});

test("a window's layers are parts of it, and what is kept free is one too", () => {
  const layers = [
    { name: "system", tokens: 30, cut: 0 }, { name: "knowledge", tokens: 0, cut: 0 },
    { name: "history", tokens: 0, cut: 50 }, { name: "incoming", tokens: 10, cut: 5 },
  ];
  const found = filling({ size: 100, reserve: 20, layers });
  equal([found.used, found.cut, found.whole], [40, 55, 100]);
  equal(found.layers.map(({ name }) => name), ["system", "history", "incoming"]);
  equal(filling({ size: null, reserve: 0, layers }).whole, 40, "of no known size");
  equal(filling({ size: 20, reserve: 20, layers }).whole, 60, "of less than there is");
  equal(filling({ reserve: 0, layers: [] }).whole, 1);
});

test("facts tell the dialect only where a model calls tools by words, and from which step on", () => {
  const told = (dialect, ...dialects) => {
    const start = { id: "bot-m1", model: "small", thread_id: "broadcast", messages: ["m1"], tools: [], dialect };
    const steps = dialects.map((each, n) => ({ n: n + 1, calls: [], dialect: each }));
    return factsOf(turn(steps, { start, agent: "bot" }), new State()).find(({ key }) => key === "dialect")?.value;
  };
  equal(["native", null, undefined].map((each) => told(each)), [undefined, undefined, undefined]);
  ok(told("tool_call").includes("tool_call"));
  equal(told("native", undefined, "tool_call", undefined), "in lines of its text (tool_call), from step 2 on");
});

test("steps of helpers are called by whose they are", () => {
  const step = (n, ...calls) => ({ n, calls: calls.map((name) => ({ name, error: null })) });
  const steps = [
    step(1), step(2, "fork", "look", "fork"), step(10_001), step(10_002, "fork"), step(11_001), step(27_001),
  ];
  const names = stepNames(steps);
  equal(words.step(names.get(2)), "Step 2");
  equal(words.step(names.get(10_002)), "Step 2 of helper 1 of step 2");
  equal(words.step(names.get(11_001)), "Step 1 of helper 1 of step 2 of helper 1 of step 2");
  equal(words.toStep(names.get(27_001)), "To step 1 of helper 2 of step 2");
});

test("calls that have begun no helper are not counted", () => {
  const calls = ["unknown_tool", "too_many_helpers", "not_first", null].map((error) => ({ name: "fork", error }));
  const steps = [{ n: 1, calls: calls.slice(0, 3) }, { n: 2, calls: calls.slice(3) }, { n: 10_001, calls: [] }];
  equal(stepNames(steps).get(10_001), { n: 1, helpers: [{ ordinal: 1, step: 2 }] });
});
