// The outcome of a turn, as a coloured word.
import { html } from "../core/ui.js";
import { t } from "../texts.js";

const GOOD = new Set(["finished"]);

export const outcomeWord = (outcome) => t.outcomes[outcome ?? "running"] ?? outcome;

/** `outcome` from the hub; null while the turn runs. `waits`: what it is parked for. */
export function Outcome({ outcome, waits = [] }) {
  if (!outcome && waits.length) return html`<span class="chip warn">${t.outcomes.waiting}</span>`;
  const mood = !outcome ? "accent" : GOOD.has(outcome) ? "ok" : "danger";
  return html`<span class=${`chip ${mood}`}>${outcomeWord(outcome)}</span>`;
}
