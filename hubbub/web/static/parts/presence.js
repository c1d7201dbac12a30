// Presence of participants, and the current activity of agents.
import { html, useComputed, useEffect, useState } from "../core/ui.js";
import { duration } from "../core/time.js";
import { t } from "../texts.js";

/** "away", "here" or "busy". */
export function presenceOf(state, id) {
  if (!state.participant(id)?.present) return "away";
  return state.busy.value.has(id) || state.activities.value.get(id)?.size ? "busy" : "here";
}

/** A dot. `told`: with its meaning for screen readers. */
export function Presence({ app, id, told = false }) {
  const is = useComputed(() => presenceOf(app.state, id)).value;
  return html`<span class=${`presence ${is}`} title=${t.presence[is]}>
    ${told && html`<span class="hidden-text">${t.presence[is]}</span>`}
  </span>`;
}

/**
 * An agent's activity: {state, tool, for, turn, since, thread}, preferably in `thread`. Null if there
 * is none that the reader can know.
 */
export function activityOf(state, agent, thread = null) {
  const mine = state.activities.value.get(agent);
  const at = thread && mine?.has(thread) ? thread : mine?.keys().next().value;
  if (at) return { ...mine.get(at), thread: at };
  return state.busy.value.has(agent) ? { state: "elsewhere", thread: null } : null;
}

/** As text with running seconds: "thinking 12 s", "calling search 3 s", "working elsewhere". */
export function Activity({ app, id, thread = null }) {
  const doing = useComputed(() => activityOf(app.state, id, thread)).value;
  return doing && html`<${Doing} key=${`${doing.state}:${doing.since}`} doing=${doing} />`;
}

function Doing({ doing }) {
  const { state, since } = doing;
  const now = useClock(since != null);
  const age = since == null ? 0 : now - since;
  return html`<span class="activity" title=${activityWords(doing)}>
    <span class="cut">${activityWords(doing)}</span>
    ${age >= 1000 && state !== "elsewhere" && html`<time>${seconds(age)}</time>`}
  </span>`;
}

function seconds(ms) {
  return ms < 90_000 ? `${Math.floor(ms / 1000)} s` : duration(ms);
}

/** Without seconds. */
export function activityWords({ state, tool, for: whom }) {
  return Object.hasOwn(t.activity, state) ? t.activity[state](tool ?? whom) : state;
}

/** The time, updated every second while `running` and the page is visible. */
function useClock(running) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    if (!running) return undefined;
    const timer = setInterval(() => document.hidden || setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [running]);
  return now;
}
