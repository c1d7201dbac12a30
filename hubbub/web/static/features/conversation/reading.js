// How far a thread counts as read by what is on the screen.

/**
 * The position up to which everything has been seen, or null if nothing new has. What lies between
 * the last message that was read and the first one on the screen has not been seen, unless one has
 * gone to the end.
 * @param {{from: number, to: number, read: number, head: number}} seen  Positions (tseq); `from` and
 *   `to` are the first and last message on the screen.
 */
export function readBy({ from, to, read, head }) {
  if (to <= read) return null;
  return from <= read + 1 || to >= head ? to : null;
}

export function isAttentive() {
  return document.visibilityState === "visible" && document.hasFocus();
}
