import { equal, ok, test } from "./harness.js";
import { folded, chunks } from "/static/core/chunks.js";

test("a text of a usual length is shown whole, a long one begins with whole words or lines", () => {
  equal(["word ".repeat(500), "line\n".repeat(39), ""].map(folded), [null, null, null]);
  const text = "word ".repeat(1000);
  const beginning = folded(text);
  ok(text.startsWith(beginning) && beginning.length > 2000 && beginning.endsWith("word"));
  const items = folded("- item\n".repeat(100));
  equal([items.split("\n").length, items.endsWith("item")], [30, true]);
});

test("folding hides enough to be worth a click", () => {
  for (const text of ["x\n".repeat(41), "word ".repeat(601)]) ok(folded(text).length < text.length * 0.85);
});

test("a text without spaces is not cut inside of a character", () => {
  for (const shift of ["", "x"]) {
    const beginning = folded(shift + "\u{1f600}".repeat(5000));
    ok(beginning.isWellFormed());
  }
});

test("pieces together are the text", () => {
  const paragraph = `${"word ".repeat(200)}\n\n`;
  const code = `\`\`\`\n${"x\n\n".repeat(9000)}\`\`\`\nafter`;
  for (const text of ["", "x", paragraph.repeat(40), "a".repeat(65_000), code]) {
    equal(chunks(text).join(""), text);
  }
});

test("paragraphs make pieces of a size that is drawn quickly", () => {
  const found = chunks(`${"word ".repeat(200)}\n\n`.repeat(40));
  ok(found.length > 4 && found.every((piece) => piece.length <= 6000));
});

test("code is not torn apart at its empty lines", () => {
  const code = `~~~~py\n${"x = 1\n\n".repeat(1000)}\`\`\`\n~~~\n\n${"y\n\n".repeat(2000)}~~~~\n`;
  const found = chunks(`before\n\n${code}\nafter`);
  equal(found.filter((piece) => piece.includes("x = 1")).length, 1);
  ok(found[0].includes(code));
});

test("a long list without empty lines is drawn in pieces as well", () => {
  const text = "- item of a list\n".repeat(3000);
  const found = chunks(text);
  equal(found.join(""), text);
  ok(found.every((piece) => piece.length < 6100 && piece.startsWith("- ")));
});
