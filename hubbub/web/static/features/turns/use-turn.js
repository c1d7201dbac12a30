// Turns as they are now, and why there is nothing to see of one.
import { agentOf } from "../../core/messages.js";
import { listed } from "../../core/pages.js";
import { html, useRef } from "../../core/ui.js";
import { activitySigns, useWatched } from "../../parts/watched.js";
import { words } from "./texts.js";

/** A turn's record; kept up to date while it runs. */
export function useTurn(app, id) {
  return useWatched(() => app.client.call("read_turn", { id }), {
    key: id,
    signs: () => activitySigns(app, [agentOf(id)]),
    // An owner who is told that there is no such turn may be early: it is still to begin.
    goesOn: (turn, error) => (turn ? !turn.end : error.code === "unknown_turn" && app.state.owner.peek()),
  });
}

/** The latest turns of an agent, or (null) of all, newest first: {turns, more}. */
export function useTurns(app, agent, most) {
  const kept = useRef({});
  const { value, error } = useWatched(() => listed(app.client, "list_turns", { name: "turns", most, ...(agent && { agent }) }), {
    key: `${agent ?? ""}:${most}`,
    signs: () => activitySigns(app, agent && [agent]),
    goesOn: (found) => found?.turns.some((turn) => !turn.outcome) ?? false,
  });
  if (value) kept.current = { agent, value };
  // Those that are shown stay while more are read.
  return { value: value ?? (kept.current.agent === agent ? kept.current.value : null), error };
}

/** Why there is nothing to see of a turn. */
export function Problem({ app, error }) {
  const early = error.code === "unknown_turn";
  const text = !early ? error.message : app.state.owner.value ? words.unknown : words.ownersOnly;
  return html`<p class="quiet" role="status">${text}</p>`;
}
