// Whom a message has reached, by what the page has heard.
import { kindOf, membersOf, rootOf } from "./ids.js";

/** Those who get what is said in a thread, besides `sender`. */
export function readersOf(state, thread, sender) {
  const root = rootOf(thread);
  const kind = kindOf(root);
  let all = [];
  if (kind === "direct") all = membersOf(root);
  else if (kind === "channel") all = state.channels.value.get(root.slice("channel.".length))?.members ?? [];
  else all = [...state.participants.value.keys()];
  return all.filter((id) => id !== sender);
}

/**
 * @returns {{state: "stored"|"delivered", reached: string[], waiting: string[]}}  Delivered: everybody
 *   has it who is here, and somebody has.
 */
export function deliveryOf(state, message) {
  const readers = readersOf(state, message.thread_id, message.sender_id);
  const known = state.delivered.value;
  const reached = readers.filter((id) => (known.get(id) ?? 0) >= message.seq);
  const waiting = readers.filter((id) => (known.get(id) ?? 0) < message.seq);
  const isOut = reached.length > 0 && !waiting.some((id) => state.participants.value.get(id)?.present);
  return { state: isOut ? "delivered" : "stored", reached, waiting };
}

/** Take in what `read_receipts` tells: who has this message has all before it. */
export function noteReceipts(state, seq, receipts) {
  const known = new Map(state.delivered.peek());
  for (const { participant, delivered } of receipts) {
    if (delivered && (known.get(participant) ?? 0) < seq) known.set(participant, seq);
  }
  state.delivered.value = known;
}
