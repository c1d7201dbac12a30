// Finding by a few letters: "cnc" finds "concierge". Pure.

const START = 12; // the letter begins the text
const WORD = 8; // it begins a word of it
const NEXT = 6; // it follows the letter found before
const FAR = 0.15; // what each letter between costs

/**
 * How well `query` fits `text`: {score, at: positions of its letters}; null if it does not. Letters
 * must come in order; case and accents do not count. A space separates words that may come in any
 * order. An empty query fits everything with 0.
 */
export function match(query, text) {
  const plain = folded(text);
  let score = 0;
  const at = new Set();
  for (const word of folded(query).split(/\s+/).filter(Boolean)) {
    const found = best(word, plain);
    if (!found) return null;
    score += found.score;
    found.at.forEach((position) => at.add(position));
  }
  return { score: score - plain.length * 0.01, at: [...at].sort((a, b) => a - b) };
}

/** Items that fit, the best first; equals stay in their order. */
export function search(query, items, textOf) {
  const found = [];
  for (const item of items) {
    const fit = match(query, textOf(item));
    if (fit) found.push({ item, ...fit });
  }
  return query.trim() ? found.sort((a, b) => b.score - a.score) : found;
}

/** Every place where the first letter stands is tried; from there the letters are taken greedily,
 * preferring beginnings of words. */
function best(word, text) {
  let winner = null;
  for (let start = text.indexOf(word[0]); start !== -1; start = text.indexOf(word[0], start + 1)) {
    const found = from(word, text, start);
    if (found && (!winner || found.score > winner.score)) winner = found;
  }
  return winner;
}

function from(word, text, start) {
  const at = [start];
  let score = worth(text, start, -2);
  for (let n = 1; n < word.length; n++) {
    const last = at[n - 1];
    const next = nextOf(word[n], text, last);
    if (next === -1) return null;
    score += worth(text, next, last) - FAR * (next - last - 1);
    at.push(next);
  }
  return { score: score + (word.length === text.length ? START : 0), at };
}

/** The letter right after, else where it begins a word, else wherever it comes. */
function nextOf(letter, text, last) {
  if (text[last + 1] === letter) return last + 1;
  for (let at = text.indexOf(letter, last + 1); at !== -1; at = text.indexOf(letter, at + 1)) {
    if (begins(text, at)) return at;
  }
  return text.indexOf(letter, last + 1);
}

function worth(text, at, last) {
  if (at === 0) return START;
  return (begins(text, at) ? WORD : 1) + (at === last + 1 ? NEXT : 0);
}

function begins(text, at) {
  return at === 0 || /[^\p{L}\p{N}]/u.test(text[at - 1]);
}

/** Without case and accents; as long as it was, so that positions stay right. */
function folded(text) {
  return Array.from(text, (char) => {
    const plain = char.normalize("NFD")[0].toLowerCase();
    return plain.length === char.length ? plain : char;
  }).join("");
}
