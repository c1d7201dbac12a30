// Who said what to whom, and who was woken by it: from messages to the things that a sequence diagram
// has. Nothing here draws.
import { membersOf } from "../../core/ids.js";
import { turnOf, wokenBy } from "../../core/messages.js";

/**
 * @param {{messages, wakes, turns}} found  Messages and envelopes, oldest first; wakes {message_id, agent, turn, state};
 *   turns: summaries, as far as there are any.
 * @returns {{actors: string[], rows, turns}}
 *   rows: {message, from, bus, to: {id, wakes}[]}, one for each message; `bus` for what is said to a
 *   room rather than to somebody. turns: {id, agent, from, to, state, outcome}, `from` and `to` being
 *   positions between rows; `to` is null for a turn that has not ended.
 */
export function storyOf({ messages, wakes, turns }) {
  const wokenAt = new Map();
  for (const wake of wakes) {
    if (!wokenAt.has(wake.message_id)) wokenAt.set(wake.message_id, []);
    wokenAt.get(wake.message_id).push(wake.agent);
  }
  const rows = messages.map((message) => rowOf(message, wokenAt.get(message.id) ?? []));
  return { actors: actorsOf(rows), rows, turns: turnsOf(messages, wakes, turns) };
}

/** The wakes that can be told from the messages themselves: those of turns that said something. */
export function wakesWithin(messages) {
  const here = new Set(messages.map(({ id }) => id));
  const found = new Map();
  for (const message of messages) {
    const turn = message.sender_kind === "system" ? null : turnOf(message);
    const by = turn && wokenBy(turn);
    if (by && here.has(by)) {
      found.set(turn, { message_id: by, agent: message.sender_id, turn, state: "ended" });
    }
  }
  return [...found.values()];
}

function rowOf(message, woken) {
  const bus = message.type !== "direct";
  const reached = bus ? [] : membersOf(message.thread_id).filter((id) => id !== message.sender_id);
  const to = [...new Set([...reached, ...woken])].map((id) => ({ id, wakes: woken.includes(id) }));
  return { message, from: message.sender_id, bus, to };
}

/** Those who speak in the order in which they do, then those who only listen. */
function actorsOf(rows) {
  const speakers = rows.map(({ from }) => from);
  const listeners = rows.flatMap(({ to }) => to.map(({ id }) => id));
  return [...new Set([...speakers, ...listeners])];
}

function turnsOf(messages, wakes, summaries) {
  const rowOfMessage = new Map(messages.map(({ id }, row) => [id, row]));
  const summaryOf = new Map(summaries.map((summary) => [summary.id, summary]));
  const lastSaid = new Map(messages.map((message, row) => [turnOf(message), row]));
  const found = new Map();
  for (const { message_id, agent, turn, state } of wakes) {
    const from = rowOfMessage.get(message_id);
    const known = found.get(turn);
    if (known) known.from = Math.min(known.from, from);
    else found.set(turn, { id: turn, agent, from, state });
  }
  return [...found.values()].map((turn) => {
    const summary = summaryOf.get(turn.id);
    const said = lastSaid.get(turn.id) ?? turn.from;
    const to = turn.state === "ended" ? Math.max(turn.from + 0.5, said, endOf(summary, messages)) : null;
    return { ...turn, to, outcome: summary?.outcome ?? null };
  });
}

/** Between which messages the turn ended, by its times; -1 if those are not known. */
function endOf(summary, messages) {
  if (summary?.duration_ms == null) return -1;
  const end = Date.parse(summary.started_at) + summary.duration_ms;
  let row = -1;
  while (row + 1 < messages.length && Date.parse(messages[row + 1].sent_at) <= end) row++;
  return row + 0.5;
}
