// Computes a turn's timeline and facts from its record.
//
// Offsets (`at_ms`) are milliseconds from the turn's start. Records of earlier versions have none: then
// each step is assumed to follow the previous one, and each call the previous call. Offsets count work
// only: not the wait for an approval, nor for the agent to come back.

const PAUSE_MS = 1000; // less is the way between the agent and the hub

/**
 * The turn's model calls and tool calls in order.
 * @returns {{rows: {kind: string, name, step, start, end, error}[], total}}
 *   Times in ms. `total` is the duration of a chart's full width, at least 1; `end` is null for an
 *   unfinished item, and `start` too for a tool that never ran. Only `start` is null for a pause, whose
 *   place is not recorded; `end` is its duration.
 */
export function timeline(turn, now) {
  const handler = turn.start.model == null;
  const rows = [];
  let clock = 0;
  for (const step of turn.steps) {
    const start = step.at_ms ?? clock;
    const end = start + (step.duration_ms ?? 0);
    const name = handler ? null : turn.start.model;
    rows.push({ kind: handler ? "handler" : "model", name, step: step.n, start, end, error: null });
    clock = Math.max(clock, handler ? start : end);
    for (const call of step.calls) clock = addCall(rows, step, call, clock);
    clock = Math.max(clock, end);
  }
  let total = clock;
  if (!turn.end) {
    total = Math.max(clock, now - Date.parse(turn.started_at));
    rows.push({ kind: "rest", name: null, step: null, start: clock, end: null, error: null });
  }
  const paused = tookMs(turn) - clock;
  if (rows.length && turn.end && paused > PAUSE_MS) {
    rows.push({ kind: "paused", name: null, step: null, start: null, end: paused, error: null });
  }
  return { rows, total: Math.max(1, total) };
}

function addCall(rows, step, call, clock) {
  const ran = call.duration_ms != null;
  const start = ran ? (call.at_ms ?? clock) : null;
  const end = ran ? start + call.duration_ms : null;
  rows.push({ kind: "tool", name: call.name, step: step.n, start, end, error: call.error ?? null });
  return ran ? Math.max(clock, end) : clock;
}

/** Milliseconds from start to end; null while the turn runs. */
export function tookMs(turn) {
  return turn.ended_at ? Date.parse(turn.ended_at) - Date.parse(turn.started_at) : null;
}

/** The dialect in use at the end: {dialect, from}, where `from` is the step that introduced it. */
export function lastDialect({ start, steps }) {
  const changed = steps.filter((step) => step.dialect).at(-1);
  return changed ? { dialect: changed.dialect, from: changed.n } : { dialect: start.dialect, from: null };
}

const APART = 10_000; // steps numbered from here on are those of helpers
const BLOCK = 17_000; // step numbers per helper, including its own helpers
const OWN = 1000; // step numbers of a helper's own steps
const NO_HELPER = new Set(["unknown_tool", "too_many_helpers", "not_first"]);

/** Labels of the steps: Map of number to {n, helpers: [{ordinal, step}]}, innermost first. */
export function stepNames(steps) {
  const names = new Map();
  const walk = (base, size, helpers) => {
    const mine = steps.filter(({ n }) => n > base && n < base + size);
    for (const { n } of mine) names.set(n, { n: n - base, helpers });
    if (helpers.length === 2) return;
    const began = mine.flatMap(({ n, calls }) =>
      calls.filter(({ name, error }) => name === "fork" && !NO_HELPER.has(error)).map(() => n),
    );
    began.forEach((n, at) => {
      const child = base ? base + (at + 1) * OWN : APART + at * BLOCK;
      walk(child, OWN, [{ ordinal: at + 1, step: n - base }, ...helpers]);
    });
  };
  walk(0, APART, []);
  return names;
}

/** The turn's totals. `cost` is null if no step has a known price. */
export function totals(turn) {
  const calls = turn.steps.flatMap((step) => step.calls);
  const costs = turn.steps.map((step) => step.cost_usd).filter((cost) => cost != null);
  return {
    steps: turn.steps.length,
    calls: calls.length,
    errors: calls.filter((call) => call.error).length,
    tokensIn: add(turn.steps.map((step) => step.tokens_in ?? 0)),
    tokensOut: add(turn.steps.map((step) => step.tokens_out ?? 0)),
    cost: costs.length ? add(costs) : null,
  };
}

/**
 * The content of the model's context window. `whole` is the size of a bar's full width, at least 1;
 * empty layers are left out.
 */
export function filling({ size, reserve, layers }) {
  const used = add(layers.map((layer) => layer.tokens));
  return {
    used,
    cut: add(layers.map((layer) => layer.cut)),
    whole: Math.max(size ?? 0, used + reserve, 1),
    layers: layers.filter((layer) => layer.tokens || layer.cut),
  };
}

/** A call's arguments or similar in readable form: JSON on several lines, text unchanged. */
export function pretty(value = null) {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

const add = (numbers) => numbers.reduce((sum, number) => sum + number, 0);
