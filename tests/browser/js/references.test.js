import { equal, ok, test } from "./harness.js";
import { linkReferences } from "/static/core/references.js";
import { fragment } from "/static/core/markdown.js";

const NAMES = {
  me: "ann",
  isParticipant: (id) => ["ann", "bob", "bob-2", "calc_"].includes(id),
  isChannel: (name) => ["general", "dev"].includes(name),
  panelOf: (id) => ({ "bob-m4": "turn", d1: "document", t2: "task" })[id] ?? null,
};

function shown(text) {
  const place = document.createElement("div");
  place.append(fragment(text));
  linkReferences(place, NAMES);
  return place;
}

const all = (text, what) => [...shown(text).querySelectorAll(what)];
const mentions = (text) => all(text, "button.mention").map((it) => it.dataset.participant);
const links = (text) => all(text, "a.reference").map((it) => it.getAttribute("href"));

test("a mention of somebody who is known can be pressed, my own are told from those of others", () => {
  equal(mentions("@bob and (@ann), also **@bob-2**, not @nobody"), ["bob", "ann", "bob-2"]);
  equal(all("@ann @bob", ".mine").map((it) => it.textContent), ["@ann"]);
});

test("punctuation after a name does not belong to it", () => {
  equal(mentions("@bob, @bob. @bob- @bob__ @calc_ @bobby"), ["bob", "bob", "bob", "bob", "calc_"]);
  equal(shown("@bob-!").textContent.trim(), "@bob-!");
});

test("in text from right to left, the sign stays before the name", () => {
  const place = document.createElement("div");
  document.body.append(place);
  place.append(shown("שלום @bob #dev"));
  for (const it of place.querySelectorAll(".mention, .reference")) {
    equal(getComputedStyle(it).direction, "ltr");
    equal(getComputedStyle(it).unicodeBidi, "isolate");
  }
  place.remove();
});

test("addresses and paths mention nobody", () => {
  equal(mentions("x@bob a/@bob me.@bob https://example.org/@bob bob@bob.example"), []);
});

test("code and links are left alone", () => {
  equal(mentions("`@bob` [@bob](https://example.org)\n```\n@bob m1 #dev\n```"), []);
  equal(links("`m1` [m1](https://example.org)"), []);
});

test("messages and channels that exist are links", () => {
  equal(links("see m42 in #dev"), ["#/message/m42", "#/thread/channel.dev"]);
  equal(links("#unknown m0 xm4 m4x m4.5 m12-a #1"), []);
  equal(links("(m42), m7."), ["#/message/m42", "#/message/m7"]);
});

test("turns, documents and tasks that can be shown are links", () => {
  equal(links("bob-m4 wrote d1 for t2, not d9, f1 or eve-m4"), ["#/?open=turn:bob-m4", "#/document/d1", "#/?open=task:t2"]);
  equal(links("xd1 d1x t2.5 at2"), []);
});

test("the text stays as it is", () => {
  for (const text of ["a @bob b m1 c #dev d", "@bob", "m1", "#general", "no reference"]) {
    equal(shown(text).textContent.trim(), text);
  }
});

test("ten thousand references do not make ten thousand buttons", () => {
  const place = shown("@bob ".repeat(3000));
  equal(place.querySelectorAll("button").length, 200);
  ok(place.textContent.trim().endsWith("@bob"));
});
