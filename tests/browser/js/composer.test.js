import { equal, ok, test } from "./harness.js";
import { Storage } from "/static/core/storage.js";
import { commandIn, completed, fitting, unescaped, wordAt } from "/static/features/composer/completion.js";
import { Drafts } from "/static/features/composer/drafts.js";

const word = (text, caret = text.length) => wordAt(text, caret);

test("names are completed wherever they begin, commands at the beginning only", () => {
  equal(word("@"), { trigger: "@", word: "", start: 0 });
  equal(word("hello @bo"), { trigger: "@", word: "bo", start: 6 });
  equal(word("(#ge"), { trigger: "#", word: "ge", start: 1 });
  equal(word("@bob and more", 2), { trigger: "@", word: "b", start: 0 });
  equal(word("/jo"), { trigger: "/", word: "jo", start: 0 });
  for (const text of ["me@bo", "@bob ", "x/@bo", "say /jo", "/join gen", "//x"]) equal(word(text), null, text);
});

test("a completed word is followed by one space", () => {
  equal(completed("hi @bo", 6, word("hi @bo"), "bob"), { text: "hi @bob ", caret: 8 });
  const text = "hi @bo there";
  equal(completed(text, 6, word(text, 6), "bob"), { text: "hi @bob there", caret: 8 });
});

test("a list of completions is short, and what begins with the word comes first", () => {
  const items = ["librarian", "ann", "big-ann", "johann"].map((value) => ({ value }));
  const fit = (typed) => fitting(items, typed).map((it) => it.value);
  equal(fit("an"), ["ann", "big-ann", "librarian", "johann"]);
  equal([fit("ANN"), fit("")], [["ann", "big-ann", "johann"], items.map((it) => it.value)]);
  ok(fitting(Array.from({ length: 300 }, (_, n) => ({ value: `p${n}` })), "p").length <= 8);
});

test("a line that begins with a slash and a name is a command, two slashes say one", () => {
  equal(commandIn("/join general"), { name: "join", rest: "general" });
  equal(commandIn("  /leave "), { name: "leave", rest: "" });
  equal(commandIn("/say one\ntwo"), { name: "say", rest: "one\ntwo" });
  for (const text of ["//join", "/ join", "/usr/bin", "say /join", "/42"]) equal(commandIn(text), null, text);
  equal(["//join x", "/usr/bin"].map(unescaped), ["/join x", "/usr/bin"]);
});

/** What a browser keeps, for all tabs. */
function backing() {
  const items = new Map();
  return {
    get length() {
      return items.size;
    },
    key: (n) => [...items.keys()][n],
    getItem: (key) => items.get(key) ?? null,
    setItem: (key, text) => items.set(key, text),
    removeItem: (key) => items.delete(key),
  };
}

function open(kept) {
  const drafts = new Drafts();
  drafts.open(new Storage("x:", kept));
  return drafts;
}

test("a draft outlives the page and is nobody else's; what was sent leaves none behind", () => {
  const kept = backing();
  const drafts = open(kept);
  const half = { text: "half a", quote: { message_id: "m1", text: "x" } };
  drafts.write("t", half);
  equal(drafts.read("t").text, "half a", "before it is kept");
  drafts.keep();
  const later = open(kept);
  equal([[...later.ids.value], later.read("t")], [["t"], half]);
  drafts.open(new Storage("y:", kept));
  equal([drafts.ids.value.size, drafts.read("t").text], [0, ""]);
  equal(open(kept).read("t").text, "half a", "but it is kept");
  later.write("t", { text: "", quote: null });
  equal([kept.length, later.ids.value.size], [0, 0]);
});

test("spaces are no draft, a quote alone is one", () => {
  const drafts = open(backing());
  drafts.write("t", { text: " \n", quote: null });
  equal(drafts.ids.value.size, 0);
  drafts.write("t", { text: "", quote: { message_id: "m1", text: "x" } });
  equal([...drafts.ids.value], ["t"]);
});

test("a draft that another tab writes or sends is the same here, unless one is writing here", () => {
  const kept = backing();
  const drafts = open(kept);
  /** What the browser tells of a key that another tab has changed. */
  const elsewhere = (text) => {
    if (text) kept.setItem("x:t", JSON.stringify({ text, quote: null }));
    else kept.removeItem("x:t");
    window.dispatchEvent(new StorageEvent("storage", { key: "x:t" }));
  };
  elsewhere("over there");
  equal([[...drafts.ids.value], drafts.elsewhere.value.thread, drafts.read("t").text], [["t"], "t", "over there"]);
  elsewhere(null);
  equal([drafts.ids.value.size, drafts.read("t").text], [0, ""]);
  const busy = open(kept);
  busy.write("t", { text: "here", quote: null });
  elsewhere("there");
  equal([busy.elsewhere.value, busy.read("t").text], [null, "here"]);
});
