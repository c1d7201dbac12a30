// A turn's record as numbers: when what ran, and the facts that are shown and compared.
//
// Offsets (`at_ms`) are milliseconds from the turn's start. Records of earlier versions have none:
// there a step is taken to follow the one before, and a call the one before it.

/**
 * The turn's model calls and tool calls in order.
 * @returns {{rows: {kind: string, name, step, start, end, error}[], total}}
 *   Times in ms. `total` is what the whole width of a chart stands for, at least 1; `end` is null for
 *   what has not ended, and of a tool that never ran `start` is null as well.
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
  return { rows, total: Math.max(1, total) };
}

function addCall(rows, step, call, clock) {
  const ran = call.duration_ms != null;
  const start = ran ? (call.at_ms ?? clock) : null;
  const end = ran ? start + call.duration_ms : null;
  rows.push({ kind: "tool", name: call.name, step: step.n, start, end, error: call.error ?? null });
  return ran ? Math.max(clock, end) : clock;
}

/** Milliseconds from beginning to end; null while the turn runs. */
export function tookMs(turn) {
  return turn.ended_at ? Date.parse(turn.ended_at) - Date.parse(turn.started_at) : null;
}

/** How the model calls tools in the end: {dialect, from}, `from` the step that began with it. */
export function lastDialect({ start, steps }) {
  const changed = steps.filter((step) => step.dialect).at(-1);
  return changed ? { dialect: changed.dialect, from: changed.n } : { dialect: start.dialect, from: null };
}

const APART = 10_000; // steps from here on are those of helpers
const BLOCK = 17_000; // numbers of a helper, with those of its own helpers
const OWN = 1000; // numbers of a helper's own steps
const NO_HELPER = new Set(["unknown_tool", "too_many_helpers", "not_first"]);

/** What the steps are called: Map of number to {n, helpers: [{ordinal, step}]}, innermost first. */
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

/** What the turn came to. `cost` is null where no step's price is known. */
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
 * What fills the model's window. `whole` is what the whole width of a bar stands for, at least 1;
 * layers without anything in them are left out.
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

/** A call's arguments or the like, to be read: JSON over several lines, text as it is. */
export function pretty(value = null) {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

const add = (numbers) => numbers.reduce((sum, number) => sum + number, 0);
