// Turns as they are now.
import { agentOf } from "../../core/messages.js";
import { doings, useWatched } from "../../parts/watched.js";

/** A turn's record; kept up to date while it runs. */
export function useTurn(app, id) {
  return useWatched(() => app.client.call("read_turn", { id }), {
    key: id,
    signs: () => doings(app, [agentOf(id)]),
    // An owner who is told that there is no such turn may be early: it is still to begin.
    goesOn: (turn, error) => (turn ? !turn.end : error.code === "unknown_turn" && app.state.owner.peek()),
  });
}

/** The latest turns of an agent, or (null) of all. */
export function useTurns(app, agent, limit) {
  const args = agent ? { agent, limit } : { limit };
  return useWatched(async () => (await app.client.call("list_turns", args)).turns, {
    key: `${agent ?? ""}:${limit}`,
    signs: () => doings(app, agent && [agent]),
    goesOn: (turns) => turns?.some((turn) => !turn.outcome) ?? false,
  });
}
