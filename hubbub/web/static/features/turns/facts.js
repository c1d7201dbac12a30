// The facts of a turn in words: what the inspector lists and the comparison sets beside each other.
import { count, dollars } from "../../core/numbers.js";
import { duration, fullTime } from "../../core/time.js";
import { t } from "../../texts.js";
import { lastDialect, tookMs, totals } from "./record.js";

const OWN_MEANS = new Set([undefined, null, "native"]); // nothing that needs to be told

/** @returns {{key, label, value}[]}  Those that are known. */
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
    calls: sum.calls ? t.turns.callsAndErrors(count(sum.calls), sum.errors) : null,
    tokens: sum.tokensIn || sum.tokensOut ? t.turns.tokens(count(sum.tokensIn), count(sum.tokensOut)) : null,
    cost: sum.cost === null ? null : dollars(sum.cost),
    attempts: turn.attempts > 1 ? t.turns.attempts(turn.attempts) : null,
  };
  return Object.entries(facts)
    .filter(([, value]) => value != null)
    .map(([key, value]) => ({ key, label: t.turns.facts[key], value }));
}

function waysOfCalling(turn) {
  const { dialect, from } = lastDialect(turn);
  if (OWN_MEANS.has(dialect)) return null;
  const words = t.turns.dialects[dialect];
  return from === null ? words : t.turns.dialectFrom(words, from);
}
