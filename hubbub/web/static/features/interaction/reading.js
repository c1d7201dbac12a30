// Reads an interaction from the hub, page by page.
const MOST_PAGES = 20; // at once: the log after an old interaction can be long

/**
 * At least `most` messages, if there are that many.
 * Returns {messages, wakes, turns, hidden, more}. `hidden` counts messages the reader cannot read.
 *   Owners get these among the messages as envelopes: `closed`, without content.
 */
export async function readInteraction(client, id, most) {
  const whole = { messages: [], wakes: [], turns: [], hidden: 0, more: true };
  const args = { id };
  for (let n = 0; n < MOST_PAGES && whole.more && whole.messages.length < most; n++) {
    const page = await client.call("read_interaction", args);
    whole.messages.push(...inOrder(page));
    whole.wakes.push(...page.wakes);
    whole.turns.push(...page.turns);
    whole.hidden += page.hidden;
    whole.more = page.more;
    args.after = page.upto;
  }
  whole.turns = [...new Map(whole.turns.map((turn) => [turn.id, turn])).values()];
  return whole;
}

function inOrder({ messages, envelopes = [] }) {
  const closed = envelopes.map((envelope) => ({ ...envelope, closed: true }));
  return [...messages, ...closed].sort((a, b) => a.seq - b.seq);
}

/** Its totals: {messages, agents, turns, calls, tokensIn, tokensOut, cost, took}; null if unknown. */
export function totalsOf({ messages, turns, wakes, hidden }) {
  const costs = turns.map(({ cost_usd }) => cost_usd).filter((cost) => cost != null);
  const starts = [...messages.map(({ sent_at }) => sent_at), ...turns.map(({ started_at }) => started_at)];
  const ends = [
    ...messages.map(({ sent_at }) => Date.parse(sent_at)),
    ...turns.map(({ started_at, duration_ms }) => Date.parse(started_at) + (duration_ms ?? 0)),
  ];
  return {
    messages: messages.filter(({ closed }) => !closed).length + hidden,
    agents: new Set(wakes.map(({ agent }) => agent)).size,
    turns: new Set(wakes.map(({ turn }) => turn)).size,
    calls: sum(turns.map(({ calls }) => calls)),
    tokensIn: sum(turns.map(({ tokens_in }) => tokens_in ?? 0)),
    tokensOut: sum(turns.map(({ tokens_out }) => tokens_out ?? 0)),
    cost: costs.length ? sum(costs) : null,
    took: starts.length ? Math.max(...ends) - Math.min(...starts.map(Date.parse)) : null,
  };
}

const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
