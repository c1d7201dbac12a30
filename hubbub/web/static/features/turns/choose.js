// What can be done with a turn. "Compare with…" opens to the agent's other turns, newest first;
// "Try it again…" to what its model would do with another prompt.
import { html, useEffect, useState } from "../../core/ui.js";
import { lazy } from "../../parts/lazy.js";
import { Outcome } from "../../parts/outcome.js";
import { Moment } from "../../parts/moment.js";
import { t } from "../../texts.js";
import { change, trialOf } from "./trying.js";
import { useTurns } from "./watching.js";
import { words } from "./texts.js";

const Trial = lazy(() => import("./trial.js").then((module) => module.Trial));
const OFFERED = 30;

export function CompareWith({ app, turn }) {
  const [open, setOpen] = useState(false);
  return html`
    <details class="choose" onToggle=${(event) => setOpen(event.currentTarget.open)}>
      <summary>${words.compareWith}</summary>
      ${open && html`<${Others} app=${app} turn=${turn} />`}
    </details>
  `;
}

/** For owners, of turns that a model was asked in. `now`: it is what one came for. */
export function TryAgain({ app, turn, now = false }) {
  const trial = trialOf(app, turn);
  const { open } = trial.value;
  useEffect(() => now && change(trial, { open: true }), [turn.start.id, now]);
  if (!app.state.owner.value || turn.start.model == null || turn.prompt == null) return null;
  return html`
    <details class="choose" open=${open}
      onToggle=${(event) => change(trial, { open: event.currentTarget.open })}>
      <summary>${t.turns.tryAgain}</summary>
      ${open && html`<${Trial} app=${app} turn=${turn} />`}
    </details>
  `;
}

function Others({ app, turn }) {
  const id = turn.start.id;
  const turns = useTurns(app, turn.agent, OFFERED).value?.turns.filter((each) => each.id !== id);
  if (!turns) return null;
  if (!turns.length) return html`<p class="quiet">${words.noOther(turn.agent)}</p>`;
  return html`
    <ul>
      ${turns.map(
        (other) => html`<li key=${other.id}>
          <a href=${app.router.href("turns", [id, other.id])}>${other.id}</a>
          <${Moment} at=${other.started_at} />
          <${Outcome} outcome=${other.outcome} />
        </li>`,
      )}
    </ul>
  `;
}
