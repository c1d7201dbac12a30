import { equal, ok, test } from "./harness.js";
import { diffLines, folded } from "/static/parts/diff.js";

const signs = { same: " ", out: "-", in: "+" };
const drawn = (a, b) => diffLines(a, b).map(({ kind, line }) => signs[kind] + line);
const lines = (...all) => all.join("\n");

/** What is left of a difference when one side is taken away. */
const side = (found, without) => found.filter(({ kind }) => kind !== without).map(({ line }) => line);

test("equal texts have no difference", () => {
  equal(drawn(lines("a", "b"), lines("a", "b")), [" a", " b"]);
});

test("a line that was added stands between its neighbours", () => {
  equal(drawn(lines("a", "c"), lines("a", "b", "c")), [" a", "+b", " c"]);
});

test("a line that was changed is one out and one in", () => {
  equal(drawn(lines("a", "b", "c"), lines("a", "x", "c")), [" a", "-b", "+x", " c"]);
});

test("nothing in common is all out and all in", () => {
  equal(drawn(lines("a", "b"), lines("x", "y")), ["-a", "-b", "+x", "+y"]);
});

test("the shortest way is found", () => {
  const found = diffLines("a\nb\nc\na\nb\nb\na", "c\nb\na\nb\na\nc");
  equal(found.filter(({ kind }) => kind !== "same").length, 5);
});

test("both texts can be read from any difference", () => {
  let seed = 7;
  const random = (n) => (seed = (seed * 1103515245 + 12345) % 2147483648) % n;
  for (let round = 0; round < 200; round++) {
    const text = () => Array.from({ length: 1 + random(12) }, () => "abc"[random(3)]).join("\n");
    const [a, b] = [text(), text()];
    const found = diffLines(a, b);
    equal(side(found, "in").join("\n"), a);
    equal(side(found, "out").join("\n"), b);
  }
});

test("texts that have little in common take no longer than they may", () => {
  const text = (mark) => Array.from({ length: 5000 }, (_, n) => `${mark}${n}`).join("\n");
  const began = performance.now();
  const found = diffLines(text("a"), text("b"));
  ok(performance.now() - began < 5000);
  equal(found.length, 10000);
});

test("long stretches of equal lines are one gap that keeps its lines", () => {
  const many = Array.from({ length: 20 }, (_, n) => String(n));
  const shown = folded(diffLines(lines(...many, "old"), lines(...many, "new")));
  equal(shown.map(({ kind }) => kind), ["gap", "same", "same", "same", "out", "in"]);
  equal(shown[0].lines.length, 17);
});

test("a gap of one line is that line", () => {
  const shown = folded(diffLines(lines("1", "2", "3", "4", "old"), lines("1", "2", "3", "4", "new")));
  equal(shown.map(({ kind }) => kind), ["same", "same", "same", "same", "out", "in"]);
});
