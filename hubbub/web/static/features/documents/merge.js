// A three-way merge by lines: changes of one side are taken, changes of both sides in the same place
// are a conflict.
import { diffLines } from "../../parts/diff.js";

/**
 * @returns {{lines?: string[], conflict?: {was: string[], theirs: string[], mine: string[]}}[]}
 *   The parts of the result, in order.
 */
export function merge(base, theirs, mine) {
  const was = base.split("\n");
  const changes = { theirs: hunks(base, theirs), mine: hunks(base, mine) };
  const parts = [];
  const keep = (lines) => lines.length && parts.push({ lines });
  let at = 0;
  for (const region of regions(changes)) {
    keep(was.slice(at, region.from));
    at = region.to;
    const old = was.slice(region.from, region.to);
    const [one, other] = [changes.theirs, changes.mine].map((side) => within(was, side, region));
    if (same(one, other) || same(other, old)) keep(one);
    else if (same(one, old)) keep(other);
    else parts.push({ conflict: { was: old, theirs: one, mine: other } });
  }
  keep(was.slice(at));
  return parts;
}

/** The merged text, with a choice for each conflict: "theirs", "mine" or "both". */
export function joined(parts, choices) {
  let n = 0;
  const lines = parts.flatMap(({ lines: plain, conflict }) => {
    if (plain) return plain;
    const choice = choices[n++];
    return choice === "both" ? [...conflict.theirs, ...conflict.mine] : conflict[choice];
  });
  return lines.join("\n");
}

/** The changes in `after`: {from, to} in lines of `before`, and the replacement lines. */
function hunks(before, after) {
  const found = [];
  let at = 0;
  let open = null;
  for (const { kind, line } of diffLines(before, after)) {
    if (kind === "same") {
      at++;
      open = null;
      continue;
    }
    if (!open) found.push((open = { from: at, to: at, lines: [] }));
    if (kind === "in") open.lines.push(line);
    else open.to = ++at;
  }
  return found;
}

/** Changed regions of the base; overlapping or adjacent changes are joined. */
function regions({ theirs, mine }) {
  const all = [...theirs, ...mine].sort((a, b) => a.from - b.from || a.to - b.to);
  const found = [];
  for (const { from, to } of all) {
    const last = found.at(-1);
    if (last && from <= last.to) last.to = Math.max(last.to, to);
    else found.push({ from, to });
  }
  return found;
}

/** One side's text of a region. */
function within(was, side, { from, to }) {
  const lines = [];
  let at = from;
  for (const hunk of side) {
    if (hunk.from < from || hunk.to > to) continue;
    lines.push(...was.slice(at, hunk.from), ...hunk.lines);
    at = hunk.to;
  }
  return [...lines, ...was.slice(at, to)];
}

const same = (a, b) => a.length === b.length && a.every((line, n) => line === b[n]);
