// Trials of recorded turns: inputs and answers are kept for the lifetime of the page, in all places
// that show the turn.
import { signal } from "../../core/ui.js";

const MOST = 20; // turns
const kept = new WeakMap(); // by app: trials by turn

/** The turn's trial, a signal: {open, system, model, outcome}. See `tryAgain` for the outcome. */
export function trialOf(app, { start, system_prompt }) {
  if (!kept.has(app)) kept.set(app, new Map());
  const trials = kept.get(app);
  if (!trials.has(start.id)) {
    const system = system_prompt ?? "";
    trials.set(start.id, signal({ open: false, system, model: "", outcome: { state: "none" } }));
    if (trials.size > MOST) trials.delete(trials.keys().next().value);
  }
  return trials.get(start.id);
}

export function change(trial, part) {
  trial.value = { ...trial.peek(), ...part };
}

/** Ask the model. The outcome: {state: "none" | "asking" | "failed" | "answered", ...}. */
export async function tryAgain(app, turn, trial) {
  const { system, model } = trial.peek();
  const other = system !== (turn.system_prompt ?? "");
  const args = { ...(other && { system_prompt: system }), ...(model && { model }) };
  const show = (outcome) => change(trial, { outcome });
  show({ state: "asking" });
  await app.client.call("try_turn", { turn: turn.start.id, ...args }).then(
    (tried) => show({ state: "answered", tried, args }),
    (error) => show({ state: "failed", error }),
  );
}
