import { equal, ok, test } from "./harness.js";
import { Storage } from "/static/core/storage.js";
import { commandIn, completed, fitting, unescaped, wordAt } from "/static/features/composer/completion.js";
import { Drafts } from "/static/features/composer/drafts.js";

const word = (text, caret = text.length) => wordAt(text, caret);

test("a name is completed from its first letter on, wherever it begins", () => {
  equal(word("@"), { trigger: "@", word: "", start: 0 });
  equal(word("hello @bo"), { trigger: "@", word: "bo", start: 6 });
  equal(word("(#ge"), { trigger: "#", word: "ge", start: 1 });
  equal(word("@bob and more", 2), { trigger: "@", word: "b", start: 0 });
});

test("addresses and what follows a name are not completed", () => {
  equal(word("me@bo"), null);
  equal(word("@bob "), null);
  equal(word("x/@bo"), null);
});

test("commands are completed at the beginning only", () => {
  equal(word("/jo"), { trigger: "/", word: "jo", start: 0 });
  equal(word("say /jo"), null);
  equal(word("/join gen"), null);
  equal(word("//x"), null);
});

test("a completed word is followed by one space", () => {
  equal(completed("hi @bo", 6, word("hi @bo"), "bob"), { text: "hi @bob ", caret: 8 });
  const text = "hi @bo there";
  equal(completed(text, 6, word(text, 6), "bob"), { text: "hi @bob there", caret: 8 });
});

test("what begins with the word comes before what has it inside", () => {
  const items = ["librarian", "ann", "big-ann", "johann"].map((value) => ({ value }));
  equal(fitting(items, "an").map((it) => it.value), ["ann", "big-ann", "librarian", "johann"]);
  equal(fitting(items, "ANN").map((it) => it.value), ["ann", "big-ann", "johann"]);
  equal(fitting(items, "").map((it) => it.value), items.map((it) => it.value));
});

test("a list of completions is short", () => {
  const items = Array.from({ length: 300 }, (_, n) => ({ value: `p${n}` }));
  ok(fitting(items, "p").length <= 8);
});

test("a line that begins with a slash and a name is a command", () => {
  equal(commandIn("/join general"), { name: "join", rest: "general" });
  equal(commandIn("  /leave "), { name: "leave", rest: "" });
  equal(commandIn("/say one\ntwo"), { name: "say", rest: "one\ntwo" });
  for (const text of ["//join", "/ join", "/usr/bin", "say /join", "/42"]) equal(commandIn(text), null, text);
});

test("two slashes say one", () => {
  equal(unescaped("//join x"), "/join x");
  equal(unescaped("/usr/bin"), "/usr/bin");
});

class Backing {
  constructor() {
    this.items = new Map();
  }
  get length() {
    return this.items.size;
  }
  key(n) {
    return [...this.items.keys()][n];
  }
  getItem(key) {
    return this.items.get(key) ?? null;
  }
  setItem(key, text) {
    this.items.set(key, text);
  }
  removeItem(key) {
    this.items.delete(key);
  }
}

function open(backing) {
  const drafts = new Drafts();
  drafts.open(new Storage("x:", backing));
  return drafts;
}

test("a draft outlives the page", () => {
  const backing = new Backing();
  const drafts = open(backing);
  drafts.write("dm.ann.bob", { text: "half a", quote: { message_id: "m1", text: "x" } });
  equal(drafts.read("dm.ann.bob").text, "half a", "before it is kept");
  drafts.keep();
  const later = open(backing);
  equal([...later.ids.value], ["dm.ann.bob"]);
  equal(later.read("dm.ann.bob"), { text: "half a", quote: { message_id: "m1", text: "x" } });
});

test("what was sent leaves no draft behind, at once", () => {
  const backing = new Backing();
  const drafts = open(backing);
  drafts.write("t", { text: "x", quote: null });
  drafts.keep();
  drafts.write("t", { text: "", quote: null });
  equal(backing.length, 0);
  equal(drafts.ids.value.size, 0);
});

test("spaces are no draft, a quote alone is one", () => {
  const drafts = open(new Backing());
  drafts.write("t", { text: " \n", quote: null });
  equal(drafts.ids.value.size, 0);
  drafts.write("t", { text: "", quote: { message_id: "m1", text: "x" } });
  equal([...drafts.ids.value], ["t"]);
});

/** What the browser tells of a key that another tab has changed. */
const elsewhere = (key) => window.dispatchEvent(new StorageEvent("storage", { key }));

test("a draft that another tab writes or sends is the same here", () => {
  const backing = new Backing();
  const drafts = open(backing);
  backing.setItem("x:t", JSON.stringify({ text: "over there", quote: null }));
  elsewhere("x:t");
  equal([[...drafts.ids.value], drafts.elsewhere.value.thread, drafts.read("t").text], [["t"], "t", "over there"]);
  backing.removeItem("x:t");
  elsewhere("x:t");
  equal([drafts.ids.value.size, drafts.read("t").text], [0, ""]);
});

test("what is being written here is not replaced by what another tab has", () => {
  const backing = new Backing();
  const drafts = open(backing);
  drafts.write("t", { text: "here", quote: null });
  backing.setItem("x:t", JSON.stringify({ text: "there", quote: null }));
  elsewhere("x:t");
  equal([drafts.elsewhere.value, drafts.read("t").text], [null, "here"]);
});

test("somebody else's drafts are not shown to who joins next", () => {
  const backing = new Backing();
  const drafts = open(backing);
  drafts.write("t", { text: "of ann", quote: null });
  drafts.open(new Storage("y:", backing));
  equal(drafts.ids.value.size, 0);
  equal(drafts.read("t").text, "");
  equal(open(backing).read("t").text, "of ann", "but they are kept");
});
