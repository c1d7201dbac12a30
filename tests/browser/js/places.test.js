import { equal, ok, test } from "./harness.js";
import { newCid } from "/static/core/client.js";
import {
  canonical, directThread, isThread, kindOf, membersOf, parentOf, repliedSeq, replyThread, rootOf, titleOf,
} from "/static/core/ids.js";
import { parse, Router } from "/static/core/router.js";
import { Storage } from "/static/core/storage.js";

test("a reply thread hangs in its thread, however deep", () => {
  const deep = "channel.general.t5.t9";
  equal([parentOf(deep), rootOf(deep), repliedSeq(deep)], ["channel.general.t5", "channel.general", 9]);
  equal([parentOf("broadcast.t3"), rootOf("broadcast.t3")], ["broadcast", "broadcast"]);
  equal(parentOf(replyThread("dm.ann.bob", 7)), "dm.ann.bob");
  for (const thread of ["channel.t5", "dm.ann.t05", "mod.t0", "channel.general", "broadcast"]) {
    equal([parentOf(thread), rootOf(thread), repliedSeq(thread)], [null, thread, null], thread);
  }
});

test("threads are named as agents are shown them and as their reader knows them, and only they are", () => {
  equal(["channel_dev", "direct_bob.t4", "direct_bob+cyd", "mod_tasks"].map((id) => canonical(id, "ann")), [
    "channel.dev", "dm.ann.bob.t4", "dm.ann.bob.cyd", "mod.tasks",
  ]);
  equal(["channel.dev", "channel_", "nothing", undefined].map((id) => canonical(id, "ann")), [null, null, null, null]);
  equal([titleOf("dm.ann.bob", "ann"), titleOf("dm.ann.bob.cyd", "bob"), titleOf("dm.ann.bob.t4", "ann")], ["bob", "ann, cyd", "bob"]);
  equal(["channel.general.t4", "broadcast", "mod.tasks"].map((id) => titleOf(id, "ann")), ["#general", "Everyone", "tasks"]);
  equal(["dm.a.b", "channel.x", "broadcast", "mod.x"].map(kindOf), ["direct", "channel", "broadcast", "mod"]);
  const threads = ["broadcast", "broadcast.t3", "dm.ann.bob", "channel.general.t5.t9", "mod.tasks"];
  equal([...threads, "", undefined, "xyz", "dm.", "channel", "broadcasts", "t3"].filter(isThread), threads);
});

test("a direct thread is the same whoever begins it", () => {
  equal(directThread("bob", "ann"), directThread("ann", "bob"));
  equal(directThread("b", "a", "B", "_"), "dm.B._.a.b", "in the order of the hub: by code");
  equal([membersOf("dm.ann.bob.t4"), membersOf("channel.general")], [["ann", "bob"], []]);
});

test("every write has an id of its own", () => {
  const made = new Set(Array.from({ length: 1000 }, newCid));
  equal(made.size, 1000);
  for (const cid of made) ok(/^[0-9a-f]{32}$/.test(cid), cid);
});

/** As much of a window as an address needs. */
function place(hash = "") {
  const target = new EventTarget();
  target.location = { hash };
  target.history = {
    state: null,
    replaceState(state, title, to = target.location.hash) {
      this.state = state;
      target.location.hash = to;
    },
  };
  return target;
}

test("every address that is made is understood again, and one that nobody made leads somewhere", () => {
  const router = new Router(place());
  for (const [view, args, open] of [
    ["thread", ["channel.general", "m42"], null],
    ["thread", ["dm.ann.bob.t4"], { kind: "turn", id: "bot-m3" }],
    ["inbox", [], { kind: "participant", id: "a_b-c" }],
    ["odd", ["a/b", "c?d", "100 %", "é#&=+"], { kind: "x", id: "a:b&c?d/é+ %" }],
    ["", [], null],
  ]) equal(parse(router.href(view, args, open)), { view, args, open });
  for (const hash of ["", "#", "#/", "#//", "#/%E0%A4%A", "#?open=", "#/x?open=y", "#javascript:alert(1)"]) {
    const { view, args } = parse(hash);
    ok(typeof view === "string" && Array.isArray(args), hash);
  }
  equal(parse("#/thread/%E0%A4%A").args, ["%E0%A4%A"]);
});

test("the right is opened and closed apart from the middle, and going where one is already is told", () => {
  const router = new Router(place("#/thread/channel.general/m4"));
  const at = { view: "thread", args: ["channel.general", "m4"] };
  router.go("thread", ["channel.general", "m4"]);
  equal(router.again.value, 1);
  router.open("message", "m4");
  equal(router.route.value, { ...at, open: { kind: "message", id: "m4" } });
  router.open(null);
  equal([router.route.value, router.again.value], [{ ...at, open: null }, 1]);
  router.open("message", "m9");
  router.go("thread", ["channel.general", "m4"]);
  equal(router.again.value, 2, "whatever is open");
  router.go("thread", ["channel.general", "m5"]);
  equal(router.again.value, 2);
});

test("back and forward are followed", () => {
  const target = place("#/inbox");
  const router = new Router(target);
  target.location.hash = "#/network";
  target.dispatchEvent(new Event("hashchange"));
  equal(router.route.value.view, "network");
  const { visit } = router;
  target.history.state = null; // as for every new entry
  router.go("agents");
  ok(router.visit !== visit);
  target.history.state = { visit };
  target.dispatchEvent(new Event("hashchange"));
  equal(router.visit, visit, "one that was visited before");
});

test("what is kept can be read, listed and removed, each network apart", () => {
  const [one, other] = [new Storage("places-one:"), new Storage("places-other:")];
  one.set("a", { deep: [1, "é"] });
  one.within("drafts").set("b", 2);
  equal([one.get("a"), other.get("a", "nothing")], [{ deep: [1, "é"] }, "nothing"]);
  equal([one.keys().sort(), one.within("drafts").keys()], [["a", "drafts:b"], ["b"]]);
  one.remove("a");
  equal(one.get("a"), null);
  localStorage.setItem("places-bad:a", "{no json");
  equal(new Storage("places-bad:").get("a", "fine"), "fine");
});

test("a storage that is full or forbidden keeps things as long as the page lives", () => {
  const full = {
    length: 0, key: () => null, getItem: () => null,
    setItem: () => { throw new DOMException("full", "QuotaExceededError"); },
    removeItem: () => { throw new DOMException("forbidden", "SecurityError"); },
  };
  for (const backing of [full, null]) {
    const storage = new Storage("places-full:", backing);
    storage.set("a", 1);
    equal([storage.get("a"), storage.keys()], [1, ["a"]]);
    storage.remove("a");
    equal([storage.get("a"), storage.keys()], [null, []]);
  }
});
