// Turns messages and wakes into the elements of a sequence diagram. Draws nothing.
import { membersOf } from "../../core/ids.js";
import { turnOf, wokenBy } from "../../core/messages.js";

/**
 * @param {{messages, wakes, turns}} found  Messages and envelopes, oldest first; wakes {message_id, agent, turn, state};
 *   turns: summaries, if available.
 * @returns {{actors: string[], rows, turns}}
 *   rows: {message, from, bus, to: {id, wakes}[]}, one per message; `bus` for a message to a room
 *   rather than to participants. turns: {id, agent, from, to, state, outcome}, where `from` and `to` are
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

/** The wakes that follow from the messages: those of turns that sent any. */
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

/** Senders in order of their first message, then those who only receive. */
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

/** The row after which the turn ended, by its times; -1 if unknown. */
function endOf(summary, messages) {
  if (summary?.duration_ms == null) return -1;
  const end = Date.parse(summary.started_at) + summary.duration_ms;
  let row = -1;
  while (row + 1 < messages.length && Date.parse(messages[row + 1].sent_at) <= end) row++;
  return row + 0.5;
}
