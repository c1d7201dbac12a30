// Fuzzy matching: "cnc" matches "concierge". Pure.

const START = 12; // the letter starts the text
const WORD = 8; // it starts a word
const NEXT = 6; // it follows the previous match
const FAR = 0.15; // cost of each skipped letter

/**
 * How well `query` matches `text`: {score, at: positions of its letters}, or null for no match.
 * Letters must occur in order; case and accents are ignored. Words separated by spaces can occur in
 * any order. An empty query matches everything with 0.
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
  return { score: at.size && score - plain.length * 0.01, at: [...at].sort((a, b) => a - b) };
}

/** Matching items, best first; ties keep their order. */
export function search(query, items, textOf) {
  const found = [];
  for (const item of items) {
    const fit = match(query, textOf(item));
    if (fit) found.push({ item, ...fit });
  }
  return query.trim() ? found.sort((a, b) => b.score - a.score) : found;
}

/** Every occurrence of the first letter is tried; the other letters are then matched greedily,
 * preferring word starts. */
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

/** The next letter if it matches, otherwise a word start, otherwise any occurrence. */
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

/** Without case and accents, but of the same length, so that positions stay valid. */
function folded(text) {
  return Array.from(text, (char) => {
    const plain = char.normalize("NFD")[0].toLowerCase();
    return plain.length === char.length ? plain : char;
  }).join("");
}
