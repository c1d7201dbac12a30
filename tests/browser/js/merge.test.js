import { equal, ok, test } from "./harness.js";
import { joined, merge } from "/static/features/documents/merge.js";

const lines = (...all) => all.join("\n");
const conflicts = (parts) => parts.filter(({ conflict }) => conflict).map(({ conflict }) => conflict);

test("changes in different places are both in it", () => {
  const base = lines("a", "b", "c", "d", "e");
  const parts = merge(base, lines("a", "B", "c", "d", "e"), lines("a", "b", "c", "D", "e"));
  equal(conflicts(parts), []);
  equal(joined(parts, []), lines("a", "B", "c", "D", "e"));
});

test("the same change of both is no conflict", () => {
  const parts = merge(lines("a", "b"), lines("a", "x"), lines("a", "x"));
  equal(conflicts(parts), []);
  equal(joined(parts, []), lines("a", "x"));
});

test("different changes of one line are a conflict with all three texts", () => {
  const parts = merge(lines("a", "b", "c"), lines("a", "x", "c"), lines("a", "c"));
  equal(conflicts(parts), [{ was: ["b"], theirs: ["x"], mine: [] }]);
  equal(joined(parts, ["theirs"]), lines("a", "x", "c"));
  equal(joined(parts, ["mine"]), lines("a", "c"));
});

test("both stands theirs first", () => {
  const parts = merge(lines("a", "b"), lines("a", "b", "x"), lines("a", "b", "y"));
  equal(joined(parts, ["both"]), lines("a", "b", "x", "y"));
});

test("changes that touch are one place", () => {
  const parts = merge(lines("a", "b", "c", "d"), lines("a", "x", "c", "d"), lines("a", "b", "y", "d"));
  equal(conflicts(parts), [{ was: ["b", "c"], theirs: ["x", "c"], mine: ["b", "y"] }]);
});

/** A few lines out of few, the same for the same seed. */
function some(seed) {
  let state = seed;
  const next = (most) => (state = (state * 16807 + 11) % 2147483647) % most;
  return Array.from({ length: next(8) }, () => "abc"[next(3)]).join("\n");
}

test("with theirs everywhere the changes of others are all there, with mine one's own", () => {
  for (let seed = 1; seed <= 1500; seed++) {
    const [base, theirs, mine] = [some(seed), some(seed + 5000), some(seed + 9000)];
    const parts = merge(base, theirs, mine);
    const all = (choice) => joined(parts, conflicts(parts).map(() => choice));
    equal(joined(merge(base, theirs, base), []), theirs);
    equal(joined(merge(base, base, mine), []), mine);
    equal(joined(merge(base, mine, mine), []), mine);
    if (!conflicts(parts).length) equal(all("theirs"), all("mine"));
    const kept = parts.flatMap((part) => part.lines ?? part.conflict.theirs);
    ok(all("theirs") === kept.join("\n"));
  }
});
