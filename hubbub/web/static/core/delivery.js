// Which participants a message has reached, as far as the page was notified.
import { kindOf, membersOf, rootOf } from "./ids.js";

/** The recipients of a message in a thread, without `sender`. */
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
 * @returns {{state: "stored"|"delivered", reached: string[], waiting: string[]}}  Delivered: every
 *   recipient who is present has it, and there is at least one.
 */
export function deliveryOf(state, message) {
  const readers = readersOf(state, message.thread_id, message.sender_id);
  const known = state.delivered.value;
  const reached = readers.filter((id) => (known.get(id) ?? 0) >= message.seq);
  const waiting = readers.filter((id) => (known.get(id) ?? 0) < message.seq);
  const isOut = reached.length > 0 && !waiting.some((id) => state.participants.value.get(id)?.present);
  return { state: isOut ? "delivered" : "stored", reached, waiting };
}

/** Apply the result of `read_receipts`: a participant who has this message has all earlier ones. */
export function noteReceipts(state, seq, receipts) {
  const known = new Map(state.delivered.peek());
  for (const { participant, delivered } of receipts) {
    if (delivered && (known.get(participant) ?? 0) < seq) known.set(participant, seq);
  }
  state.delivered.value = known;
}
