// Which messages of a thread are answers that nothing of the same interaction follows.

const FAR = 30; // messages that are looked through

/** Whether an agent has said it, and none has said more of the same interaction in this thread. */
export function isLastAnswer(thread, { sender_kind: kind, spoken_by: person, interaction_id: id, seq, tseq }) {
  if (kind !== "agent" || person || id === `i${seq}`) return false; // what it said unasked is no answer
  thread.changed.value;
  for (let at = tseq + 1; at <= tseq + FAR; at++) {
    const next = thread.at(at);
    if (next?.interaction_id === id && next.sender_kind === "agent" && !next.amends) return false;
  }
  return true;
}
