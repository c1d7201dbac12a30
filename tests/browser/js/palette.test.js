import { Storage } from "/static/core/storage.js";
import { find } from "/static/features/palette/items.js";
import { Recent } from "/static/features/palette/recent.js";
import { equal, test } from "./harness.js";

const ITEMS = [
  { id: "channel:general", kind: "channel", title: "#general" },
  { id: "person:calculator", kind: "person", title: "calculator" },
  { id: "person:concierge", kind: "person", title: "concierge" },
  { id: "command:help", kind: "command", title: "Keys" },
  { id: "command:create", kind: "command", title: "Create a channel" },
];
const fresh = () => new Recent(new Storage(`test${Math.random()}:`, null));
const ids = (query, recent = fresh(), items = ITEMS) => find(query, items, recent).map(({ id }) => id);

test("everything is offered in its order when nothing was asked", () => equal(ids(""), ITEMS.map(({ id }) => id)));

test("a sign at the beginning looks for one kind only", () => {
  equal(ids("#"), ["channel:general"]);
  equal(ids("@c").sort(), ["person:calculator", "person:concierge"]);
  equal(ids(">"), ["command:help", "command:create"]);
});

test("what was chosen lately comes first, if it fits", () => {
  const recent = fresh();
  recent.chose("person:concierge");
  equal(ids("", recent)[0], "person:concierge");
  equal(ids("@c", recent)[0], "person:concierge");
  equal(ids("keys", recent), ["command:help"]);
});

test("of several recent ones the latest comes first", () => {
  const recent = fresh();
  recent.chose("command:help");
  recent.chose("channel:general");
  recent.chose("command:help");
  equal(ids("", recent).slice(0, 2), ["command:help", "channel:general"]);
});

test("what is unread comes before what is not", () => {
  const items = [...ITEMS, { id: "thread:x", kind: "thread", title: "x", unread: 2 }];
  equal(ids("", fresh(), items)[0], "thread:x");
});

test("what was chosen is remembered", () => {
  const storage = new Storage("remembered:", localStorage);
  new Recent(storage).chose("person:concierge");
  equal(new Recent(storage).rank("person:concierge"), 0);
  equal(new Recent(storage).rank("person:nobody"), Infinity);
  localStorage.clear();
});

test("the list is not longer than it is asked to be", () => {
  equal(find("", ITEMS, fresh(), 2).length, 2);
});
