import { equal, ok, test } from "./harness.js";
import { Budget } from "/static/core/budget.js";
import { ProseCache } from "/static/core/prose-cache.js";
import { frameCode } from "/static/parts/code-block.js";
import { fragment } from "/static/core/markdown.js";
import { languageOf } from "/static/parts/highlight.js";

/** A budget with a clock and frames of its own. */
function budget() {
  const made = { time: 0, frames: [] };
  made.budget = new Budget({ clock: () => made.time, nextFrame: (then) => made.frames.push(then) });
  made.work = (ms) => () => (made.time += ms);
  made.frame = () => made.frames.splice(0).forEach((then) => then());
  return made;
}

test("work is done at once as long as the frame has time, and the next one has time again", () => {
  const { budget: it, work, frame } = budget();
  equal([it.now(work(5)), it.now(work(5)), it.now(work(5))], [true, true, false]);
  frame();
  ok(it.now(work(1)));
});

test("what waits is done a few milliseconds per frame, in order, unless nobody waits any more", () => {
  const made = budget();
  const done = [];
  const [cancel] = [0, 1, 2, 3, 4].map((n) => made.budget.later(() => (done.push(n), made.work(5)())));
  cancel();
  made.frame();
  equal(done, [1, 2]);
  equal(made.budget.now(made.work(1)), false, "those who came first go first");
  made.frame();
  equal(done, [1, 2, 3, 4]);
  made.frame();
  equal(made.frames.length, 0, "and then it rests");
});

const NAMES = { me: "ann", isParticipant: () => true, isChannel: () => false };

test("a text is parsed once and kept, until it was not needed for long", () => {
  const cache = new ProseCache(NAMES);
  const first = cache.get("**x** @bob");
  equal(cache.get("**x** @bob"), first);
  equal(first.querySelector("button.mention").textContent, "@bob");
  cache.get("kept");
  for (let n = 0; n < 1000; n++) {
    cache.get(`text ${n}`);
    cache.get("kept");
  }
  ok(cache.kept.size <= 400 && cache.has("kept") && !cache.has("text 3"));
  cache.get("x ".repeat(400_000));
  cache.get("y ".repeat(400_000));
  ok(cache.characters <= 1_000_000);
});

test("code says its language, can be copied, and gets its colours later", async () => {
  const made = fragment("```python\nreturn 1\n```");
  const colours = frameCode(made);
  equal(made.querySelector(".code-top span").textContent, "python");
  ok(made.querySelector("button.copy-code") && made.querySelector("pre[tabindex]"));
  await colours;
  equal(made.querySelector(".code-kwd").textContent, "return");
  equal(made.querySelector("code").textContent, "return 1");
  equal(frameCode(made), null, "once is enough");
});

test("code in a language that is not known stays plain, a text without any waits for nothing", async () => {
  equal(frameCode(fragment("plain")), null);
  const made = fragment("```klingon\nreturn 1\n```");
  await frameCode(made);
  equal(made.querySelector("code").children.length, 0);
  equal(languageOf("constructor"), null);
  equal(languageOf("__proto__"), null);
});

test("a table scrolls by itself", () => {
  const made = fragment("|a|\n|-|\n|b|");
  frameCode(made);
  ok(made.querySelector(".table[tabindex='0'] > table"));
});

test("hostile code does not hold up the page", async () => {
  const heaps = ['"', "f'{", "/*", "<a ", "0."].map((part) => part.repeat(11_000 / part.length));
  for (const heap of heaps) {
    for (const language of ["py", "js", "html", "md", "css", "sql"]) {
      const made = fragment(`\`\`\`${language}\n${heap}\n\`\`\``);
      const began = performance.now();
      await frameCode(made);
      ok(performance.now() - began < 2000, `${language}: ${heap.slice(0, 9)} ${performance.now() - began}`);
      equal(made.querySelector("code").textContent, heap);
    }
  }
});
