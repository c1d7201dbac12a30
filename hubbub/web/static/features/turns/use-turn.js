// Live turns, and the reason if one cannot be shown.
import { agentOf } from "../../core/messages.js";
import { listed } from "../../core/pages.js";
import { html, useRef } from "../../core/ui.js";
import { activitySigns, useWatched } from "../../parts/watched.js";
import { words } from "./texts.js";

/** A turn's record, updated while it runs. */
export function useTurn(app, id) {
  return useWatched(() => app.client.call("read_turn", { id }), {
    key: id,
    signs: () => activitySigns(app, [agentOf(id)]),
    // For an owner, an unknown turn may not have begun yet.
    goesOn: (turn, error) => (turn ? !turn.end : error.code === "unknown_turn" && app.state.owner.peek()),
  });
}

/** The latest turns of an agent, or of all (null), newest first: {turns, more}. */
export function useTurns(app, agent, most) {
  const kept = useRef({});
  const { value, error } = useWatched(() => listed(app.client, "list_turns", { name: "turns", most, ...(agent && { agent }) }), {
    key: `${agent ?? ""}:${most}`,
    signs: () => activitySigns(app, agent && [agent]),
    goesOn: (found) => found?.turns.some((turn) => !turn.outcome) ?? false,
  });
  if (value) kept.current = { agent, value };
  // Keep showing the current ones while more are loading.
  return { value: value ?? (kept.current.agent === agent ? kept.current.value : null), error };
}

/** Why a turn cannot be shown. */
export function Problem({ app, error }) {
  const early = error.code === "unknown_turn";
  const text = !early ? error.message : app.state.owner.value ? words.unknown : words.ownersOnly;
  return html`<p class="quiet" role="status">${text}</p>`;
}
