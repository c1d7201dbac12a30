import { equal, ok, test } from "./harness.js";
import { diffLines, folded } from "/static/parts/diff.js";

const signs = { same: " ", out: "-", in: "+" };
const drawn = (a, b) => diffLines([...a].join("\n"), [...b].join("\n")).map(({ kind, line }) => signs[kind] + line).join("");

test("lines that were added, taken out or changed stand between their neighbours", () => {
  for (const [a, b, difference] of [
    ["ab", "ab", " a b"], ["ac", "abc", " a+b c"], ["abc", "axc", " a-b+x c"], ["ab", "xy", "-a-b+x+y"],
  ]) equal(drawn(a, b), difference);
  equal(drawn("abcabba", "cbabac").replace(/ \w/g, "").length, 10, "the shortest way is found: five lines");
});

test("both texts can be read from any difference", () => {
  let seed = 7;
  const random = (n) => (seed = (seed * 1103515245 + 12345) % 2147483648) % n;
  const side = (found, without) => found.filter(({ kind }) => kind !== without).map(({ line }) => line).join("\n");
  for (let round = 0; round < 200; round++) {
    const text = () => Array.from({ length: 1 + random(12) }, () => "abc"[random(3)]).join("\n");
    const [a, b] = [text(), text()];
    equal([side(diffLines(a, b), "in"), side(diffLines(a, b), "out")], [a, b]);
  }
});

test("texts that have little in common take no longer than they may", () => {
  const text = (mark) => Array.from({ length: 5000 }, (_, n) => `${mark}${n}`).join("\n");
  const began = performance.now();
  equal(diffLines(text("a"), text("b")).length, 10000);
  ok(performance.now() - began < 5000);
});

test("long stretches of equal lines are one gap that keeps its lines, one line is no gap", () => {
  const kinds = (count) => {
    const many = Array.from({ length: count }, (_, n) => String(n));
    const shown = folded(diffLines([...many, "old"].join("\n"), [...many, "new"].join("\n")));
    return [shown.map(({ kind }) => kind).join(" "), shown[0].lines?.length];
  };
  equal(kinds(20), ["gap same same same out in", 17]);
  equal(kinds(4), ["same same same same out in", undefined]);
});
