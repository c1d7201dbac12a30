// Long texts: the excerpt shown at first, and the pieces in which the whole is drawn.

const FOLD = { longest: 3000, lines: 40, keep: 2400, keepLines: 30 };
const PIECE = 6000;

/** The beginning of a text that is too long to show; null for any other. */
export function folded(text) {
  const end = Math.min(text.length, FOLD.longest + 1);
  if (end === text.length && afterLines(text, FOLD.lines, end) >= end) return null;
  return text.slice(0, cut(text, Math.min(FOLD.keep, afterLines(text, FOLD.keepLines, end))));
}

const ITEM = /^(?:[-*+]|\d{1,9}[.)]|#{1,6}) /;

/**
 * A text in pieces, split at blank lines outside of code or between list items, each of at most about
 * 6,000 characters if possible.
 */
export function chunks(text) {
  const found = [];
  let piece = "";
  let inCode = null;
  for (const line of text.split(/(?<=\n)/)) {
    const fence = /^ {0,3}(```+|~~~+)/.exec(line)?.[1];
    if (fence && (inCode === null || fence.startsWith(inCode))) inCode = inCode === null ? fence : null;
    if (piece.length > PIECE && inCode === null && ITEM.test(line)) {
      found.push(piece);
      piece = "";
    }
    piece += line;
    if (piece.length > PIECE / 2 && inCode === null && line.trim() === "") {
      found.push(piece);
      piece = "";
    }
  }
  return piece ? [...found, piece] : found;
}

/** The end of the first `most` lines, at most `end`. */
function afterLines(text, most, end) {
  let at = 0;
  for (let line = 0; line < most; line++) {
    at = text.indexOf("\n", at) + 1;
    if (at === 0 || at > end) return end;
  }
  return at;
}

/** A safe split at or before `at`: after a line or word, never inside a character. */
function cut(text, at) {
  const near = text.slice(Math.max(0, at - 300), at);
  const gap = Math.max(near.lastIndexOf("\n"), near.lastIndexOf(" "));
  if (gap > 0) return at - near.length + gap;
  const code = text.charCodeAt(at - 1);
  return code >= 0xd800 && code < 0xdc00 ? at - 1 : at;
}
