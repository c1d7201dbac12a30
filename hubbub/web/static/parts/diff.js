// A line diff: the shortest edit (Myers 1986), with a bound on the effort.
const MOST_EDITS = 600; // beyond it, everything between the common beginning and end counts as replaced

/**
 * @returns {{kind: "same" | "out" | "in", line: string}[]}  The lines of both: `out` stands in `before`
 *   only, `in` in `after` only.
 */
export function diffLines(before, after) {
  const a = before.split("\n");
  const b = after.split("\n");
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  const most = Math.min(a.length, b.length) - head;
  while (tail < most && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const middle = edits(a.slice(head, a.length - tail), b.slice(head, b.length - tail));
  const same = (line) => ({ kind: "same", line });
  return [...a.slice(0, head).map(same), ...middle, ...a.slice(a.length - tail).map(same)];
}

/**
 * The same without long stretches of equal lines.
 * @param {number} around  Equal lines that stay beside each difference.
 * @returns  The lines, and {kind: "gap", lines} for each stretch, `lines` being those left out.
 */
export function folded(lines, around = 3) {
  const near = new Uint8Array(lines.length);
  lines.forEach(({ kind }, at) => {
    if (kind !== "same") near.fill(1, Math.max(0, at - around), at + around + 1);
  });
  const shown = [];
  for (let at = 0; at < lines.length; ) {
    let end = at;
    while (end < lines.length && !near[end]) end++;
    // A gap takes a line itself.
    if (end - at > 1) shown.push({ kind: "gap", lines: lines.slice(at, end) });
    else shown.push(...lines.slice(at, end));
    if (end < lines.length) shown.push(lines[end]);
    at = end + 1;
  }
  return shown;
}

function edits(a, b) {
  const trace = search(a, b);
  if (!trace) {
    return [...a.map((line) => ({ kind: "out", line })), ...b.map((line) => ({ kind: "in", line }))];
  }
  const found = [];
  let x = a.length;
  let y = b.length;
  for (let d = trace.length - 1; d >= 0; d--) {
    const furthest = trace[d];
    const k = x - y;
    const down = k === -d || (k !== d && at(furthest, k - 1) < at(furthest, k + 1));
    const fromX = d === 0 ? 0 : at(furthest, down ? k + 1 : k - 1);
    const fromY = d === 0 ? 0 : fromX - (down ? k + 1 : k - 1);
    while (x > fromX && y > fromY && a[x - 1] === b[y - 1]) {
      found.push({ kind: "same", line: a[--x] });
      y--;
    }
    if (d > 0) found.push(down ? { kind: "in", line: b[--y] } : { kind: "out", line: a[--x] });
  }
  return found.reverse();
}

/** For each number of edits, how far each diagonal got with one less; null beyond the bound. */
function search(a, b) {
  const trace = [];
  let furthest = new Map([[1, 0]]);
  for (let d = 0; d <= Math.min(MOST_EDITS, a.length + b.length); d++) {
    trace.push(furthest);
    const next = new Map();
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && at(furthest, k - 1) < at(furthest, k + 1));
      let x = down ? at(furthest, k + 1) : at(furthest, k - 1) + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x++;
      next.set(k, x);
      if (x >= a.length && x - k >= b.length) return trace;
    }
    furthest = next;
  }
  return null;
}

const at = (furthest, k) => furthest.get(k) ?? -1;
