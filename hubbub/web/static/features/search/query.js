// The search in the address: `#/search/<words>/<filters>`. Pure.

const FILTERS = ["kind", "by", "thread", "after", "before"];

/** {query, kind, by, thread, after, before}, all strings; empty: no such filter. */
export function queryOf([query = "", filters = ""]) {
  const given = new URLSearchParams(filters);
  return { query, ...Object.fromEntries(FILTERS.map((name) => [name, given.get(name) ?? ""])) };
}

/** Arguments of the view's address. */
export function argsOf({ query, ...filters }) {
  const given = FILTERS.filter((name) => filters[name]).map((name) => [name, filters[name]]);
  return given.length ? [query, new URLSearchParams(given).toString()] : [query];
}

/** Arguments of the operation. Days are in the reader's time zone. */
export function callOf({ query, kind, by, thread, after, before }, cursor) {
  const midnight = (day) => new Date(`${day}T00:00`).toISOString();
  return {
    query, limit: 20,
    ...(kind && { kinds: [kind] }), ...(by && { by }), ...(thread && { thread }), ...(cursor && { cursor }),
    ...(after && { after: midnight(after) }), ...(before && { before: midnight(before) }),
  };
}

/** A text split into [part, whether it matches]. */
export function marked(text, query) {
  const wanted = wordsOf(query);
  if (!wanted.length) return [[text, false]];
  const found = new RegExp(`(?<![\\p{L}\\p{N}])(${wanted.join("|")})(?![\\p{L}\\p{N}])`, "giu");
  return text.split(found).map((piece, n) => [piece, n % 2 === 1]).filter(([piece]) => piece);
}

/** Patterns of the required words, longest first. */
function wordsOf(query) {
  const parts = query.match(/-?"[^"]*"|\S+/g) ?? [];
  const words = parts.filter((part) => !part.startsWith("-")).flatMap((part) => part.match(/[\p{L}\p{N}]+\*?/gu) ?? []);
  const patterns = words.map((word) => word.replace("*", "[\\p{L}\\p{N}]*"));
  return [...new Set(patterns)].sort((a, b) => b.length - a.length);
}
