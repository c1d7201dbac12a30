// A turn's facts as text, for the inspector and the comparison.
import { count, dollars } from "../../core/numbers.js";
import { duration, fullTime } from "../../core/time.js";
import { lastDialect, tookMs, totals } from "./record.js";
import { words } from "./texts.js";

const OWN_MEANS = new Set([undefined, null, "native"]); // defaults that are not shown

/** @returns {{key, label, value}[]}  The known facts. */
export function factsOf(turn, state) {
  const sum = totals(turn);
  const took = tookMs(turn);
  const facts = {
    agent: state.nameOf(turn.agent),
    thread: state.titleOf(turn.start.thread_id),
    model: turn.start.model,
    dialect: waysOfCalling(turn),
    promptId: turn.start.prompt_id,
    started: fullTime(turn.started_at),
    took: took === null ? null : duration(took),
    steps: count(sum.steps),
    calls: sum.calls ? words.callsAndErrors(count(sum.calls), sum.errors) : null,
    tokens: sum.tokensIn || sum.tokensOut ? words.tokens(count(sum.tokensIn), count(sum.tokensOut)) : null,
    cost: sum.cost === null ? null : dollars(sum.cost),
    attempts: turn.attempts > 1 ? words.attempts(turn.attempts) : null,
  };
  return Object.entries(facts)
    .filter(([, value]) => value != null)
    .map(([key, value]) => ({ key, label: words.facts[key], value }));
}

function waysOfCalling(turn) {
  const { dialect, from } = lastDialect(turn);
  if (OWN_MEANS.has(dialect)) return null;
  const way = words.dialects[dialect];
  return from === null ? way : words.dialectFrom(way, from);
}
