// The list of turns as the hub tells it, page after page.
const PAGE = 100;

/**
 * The latest `most` turns of an agent, or (null) of all, newest first.
 * @returns {{turns, more}}  `more`: whether there are earlier ones.
 */
export async function readTurns(client, agent, most) {
  const found = { turns: [], more: true };
  while (found.more && found.turns.length < most) {
    const args = { limit: Math.min(PAGE, most - found.turns.length) };
    if (agent) args.agent = agent;
    if (found.turns.length) args.before = found.turns.at(-1).id;
    const page = await client.call("list_turns", args);
    found.turns.push(...page.turns);
    found.more = page.more;
  }
  return found;
}
