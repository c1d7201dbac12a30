import { equal, test } from "./harness.js";
import { Registry } from "/static/core/registry.js";

test("what was added while somebody listened is taken back at once, and nothing else", () => {
  const add = new Registry();
  const ended = [];
  add.views.add({ name: "before" });
  const back = add.during(() => {
    add.views.add({ name: "within" });
    add.commands.add({ id: "it" });
    return () => ended.push("end");
  });
  add.views.add({ name: "after" });
  equal([...add.views].map(({ name }) => name), ["before", "within", "after"]);
  back();
  equal([...add.views].map(({ name }) => name), ["before", "after"]);
  equal([[...add.commands].length, ended], [0, ["end"]]);
});

test("a later command of the same id with a lower order goes first while it is there", () => {
  const add = new Registry();
  add.commands.add({ id: "it", title: "usual" });
  const back = add.commands.add({ id: "it", title: "other", order: 10 });
  const found = () => add.commands.find(({ id }) => id === "it").title;
  equal(found(), "other");
  back();
  equal(found(), "usual");
});

test("a menu offers what is possible in its context, and runs it with that", () => {
  const add = new Registry();
  const ran = [];
  add.messageMenu.add({ title: "one", order: 20, run: (context) => ran.push(context.message) });
  add.messageMenu.add({ title: "two", order: 10, when: ({ message }) => message === "m1", run: () => {} });
  const offered = (message) => add.messageMenu.offered({ message });
  equal(offered("m1").map(({ title }) => title), ["two", "one"]);
  equal(offered("m2").map(({ title }) => title), ["one"]);
  offered("m2")[0].run();
  equal(ran, ["m2"]);
});
