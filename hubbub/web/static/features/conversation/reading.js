// Derives a thread's read mark from the visible messages.

/**
 * The position up to which everything was seen, or null if there is nothing new. Messages between the
 * read mark and the first visible one were not seen, unless the reader has
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
