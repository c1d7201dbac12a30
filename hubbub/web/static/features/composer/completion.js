// The word being written, and its completions. Pure.

const MOST = 8;
const LOOK_BACK = 80; // names are at most 64 characters

/**
 * The word before the caret that can be completed: {trigger, word, start}; null if there is none.
 * `start` is the position of its trigger. Commands must be at the beginning.
 */
export function wordAt(text, caret) {
  const before = text.slice(Math.max(0, caret - LOOK_BACK), caret);
  const command = caret <= LOOK_BACK && /^\/([\w-]*)$/.exec(before);
  if (command) return { trigger: "/", word: command[1], start: 0 };
  const found = /(?:^|[\s(\[{"'*_>])([@#])([\p{L}\p{N}_-]*)$/u.exec(before);
  return found && { trigger: found[1], word: found[2], start: caret - found[2].length - 1 };
}

/** The text with the word replaced, and the new caret position. */
export function completed(text, caret, { trigger, start }, value) {
  const rest = text.slice(caret);
  const before = `${text.slice(0, start)}${trigger}${value}`;
  return { text: before + (rest.startsWith(" ") ? "" : " ") + rest, caret: before.length + 1 };
}

/** Matching `items` ({value, ...}, best first): those that begin with the word come first. */
export function fitting(items, word) {
  const wanted = word.toLowerCase();
  const rank = ({ value, also = "" }) => {
    const name = value.toLowerCase();
    if (name.startsWith(wanted) || also.toLowerCase().startsWith(wanted)) return 0;
    if (name.split(/[-_]/).some((part) => part.startsWith(wanted))) return 1;
    return name.includes(wanted) ? 2 : 3;
  };
  const ranked = items.map((item) => [rank(item), item]).filter(([n]) => n < 3);
  return ranked.sort((a, b) => a[0] - b[0]).slice(0, MOST).map(([, item]) => item);
}

/** The command of a line that begins with a slash: {name, rest}; null for a text to send. */
export function commandIn(text) {
  const match = /^\/([A-Za-z][\w-]*)(?:\s+([\s\S]*))?$/.exec(text.trim());
  return match && { name: match[1], rest: (match[2] ?? "").trim() };
}

/** The text to send: `//x` becomes `/x`. */
export function unescaped(text) {
  return text.startsWith("//") ? text.slice(1) : text;
}
