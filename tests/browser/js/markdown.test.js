import { equal, ok, test } from "./harness.js";
import { fragment, visible } from "/static/core/markdown.js";

/** What a browser makes of a message's text. */
function shown(text) {
  const place = document.createElement("div");
  place.append(fragment(text));
  return place;
}

const html = (text) => shown(text).innerHTML.trim();
const links = (text) => [...shown(text).querySelectorAll("a")].map((a) => a.getAttribute("href"));

test("emphasis, lists and code are drawn", () => {
  equal(html("**a** and _b_"), "<p><strong>a</strong> and <em>b</em></p>");
  equal(shown("- one\n- two").querySelectorAll("ul > li").length, 2);
  equal(shown("```python\nx = 1 < 2\n```").querySelector("pre code.lang-python").textContent, "x = 1 < 2");
});

test("a line break in a message is a line break", () => {
  equal(shown("one\ntwo").querySelectorAll("br").length, 1);
});

test("a link of the web opens in a new tab that knows nothing of this page", () => {
  const link = shown("[x](https://example.org/)").querySelector("a");
  equal(link.getAttribute("target"), "_blank");
  ok(link.relList.contains("noopener") && link.relList.contains("noreferrer"));
});

test("a link into this page stays in it", () => {
  const link = shown("[x](#/thread/channel.general/m4)").querySelector("a");
  equal(link.getAttribute("href"), "#/thread/channel.general/m4");
  equal(link.hasAttribute("target"), false);
});

test("markup of a message is shown as text", () => {
  const markup = "<script>window.hit = 1</script> <img src=x onerror=hit()> <b>b</b> <svg onload=hit()>";
  const place = shown(markup);
  equal(place.querySelector("*:not(p)"), null);
  equal(place.textContent.trim(), markup);
});

test("a link that would run something or carry a page in it leads nowhere", () => {
  const bad = [
    "javascript:alert(1)", "JaVaScRiPt:alert(1)", "java\tscript:alert(1)", "\u0001javascript:alert(1)",
    "&#106;avascript:alert(1)", "vbscript:x", "data:text/html,<script>1</script>", "file:///etc/passwd",
    "blob:http://localhost/1", "//example.org/x", "/static/x", "javascript&colon;alert(1)",
  ];
  for (const url of bad) {
    for (const text of [`[x](${url})`, `[x](<${url}>)`, `<${url}>`, `![x](${url})`, `[x][1]\n\n[1]: ${url}`]) {
      for (const href of links(text)) equal(href, null, text);
    }
  }
});

test("a picture is a link: fetching it would tell who reads", () => {
  const place = shown("![alt](https://example.org/a.png)");
  equal(place.querySelector("img"), null);
  equal(place.querySelector("a").textContent, "alt");
});

test("nothing in a message can be named, styled or listened to", () => {
  const texts = [
    '```x" onclick="hit()\ncode\n```', '[x](https://a.b "t\\" onclick=\\"hit()")', "# [x](#a){#id style=color:red}",
    '<a id=desk name=body style="position:fixed" class=bar href=https://a.b onclick=hit()>x</a>',
  ];
  for (const text of texts) {
    for (const element of shown(text).querySelectorAll("*")) {
      const attributes = element.getAttributeNames();
      const bad = attributes.filter((name) => /^on|^id$|^name$|^style$/.test(name));
      equal(bad, [], text);
    }
  }
});

test("a class is a language or a mention and nothing of the page's own", () => {
  const classes = [...shown("```desk bar\nx\n```\n```../a\nx\n```").querySelectorAll("code")].map((code) => code.className);
  for (const name of classes) ok(name === "" || name.startsWith("lang-"), name);
});

test("a task list shows what is done, and nothing in it can be ticked", () => {
  const place = shown("- [x] done\n- [ ] open");
  equal([...place.querySelectorAll("li")].map((item) => item.textContent.trim()), ["☑ done", "☐ open"]);
  equal(place.querySelector("input"), null);
});

test("a heading lies below those of the page", () => {
  equal([...shown("# one\n\n## two").children].map((it) => it.tagName), ["H3", "H4"]);
});

test("no heading leaves out a level, whatever the text has", () => {
  const levels = (text) => [...shown(text).children].map((it) => it.tagName);
  equal(levels("#### a\n\n###### b\n\n# c\n\n### d"), ["H3", "H4", "H3", "H4"]);
  equal(levels("###### next text"), ["H3"]);
});

test("lines of a plain answer stay as far in as they were written", () => {
  const answer = "How we got there:\n  librarian: 142,984 km\n    from: planets.md\n\tcalculator: 88,846 mi";
  const lines = shown(answer).textContent.replaceAll("\u00a0", "_").trim();
  equal(lines, "How we got there:__librarian: 142,984 km____from: planets.md____calculator: 88,846 mi");
});

test("what is set in for Markdown is Markdown", () => {
  const text = "- a\n  b\n\n  c\n\n```\nif x:\n    y\n\nz\n  w\n```\n\nwords\n  - d\n\n> e\n  f\n\n    code";
  ok(!shown(text).textContent.includes("\u00a0"), shown(text).innerHTML);
  equal(shown(text).querySelectorAll("li").length, 2);
  equal(shown(text).querySelectorAll("pre").length, 2);
});

test("characters that turn the direction of text are shown and not obeyed", () => {
  const text = shown("abc\u202Efdp.exe \u2066x\u2069").textContent;
  ok(!/[\u202a-\u202e\u2066-\u2069]/.test(text));
  ok(text.includes("\\u202e"), text);
  equal(visible("\u05d0\u0628"), "\u05d0\u0628", "letters of such scripts are left alone");
});

const HEAPS = {
  "a word of 64 KiB": "a".repeat(65_536),
  "5,000 emoji": "\u{1f600}".repeat(5000),
  "32,000 quotes in each other": "> ".repeat(32_000) + "x",
  "32,000 lists in each other": "- ".repeat(32_000) + "x",
  "21,000 numbered lists in each other": "1. ".repeat(21_000) + "x",
  "32,000 underscores between letters": "_a".repeat(32_000),
  "60,000 brackets": "[".repeat(60_000),
  "60,000 stars": "*".repeat(60_000),
  "16,000 open links": "[a](".repeat(16_000),
  "9,000 rows of a table": `|a|b|\n|-|-|\n${"|x|y|\n".repeat(9000)}`,
};

test("whatever is heaped up is drawn, or shown as it is", () => {
  for (const [name, text] of Object.entries(HEAPS)) {
    const place = shown(text);
    const first = text.match(/[a-zx\u{1f600}[*]/u)[0];
    ok(place.textContent.includes(first), name);
  }
});

test("whatever is heaped up takes no longer than a hundred times what plain text takes", () => {
  const took = (text) => {
    const began = performance.now();
    fragment(text);
    return performance.now() - began;
  };
  const plain = "Words of a usual length, in sentences. ".repeat(1700);
  took(plain);
  const usual = Math.max(1, Math.min(took(plain), took(plain), took(plain)));
  for (const [name, text] of Object.entries(HEAPS)) {
    const ratio = Math.min(took(text), took(text)) / usual;
    ok(ratio < 100, `${name}: ${ratio.toFixed(0)} times as long`);
  }
});
