import { Storage } from "/static/core/storage.js";
import { Identity } from "/static/features/join/identity.js";
import { equal, test } from "./harness.js";

/** A browser: `tab()` gives the identity of another tab of it. */
function browser() {
  const storage = new Storage(`test${Math.random()}:`, null);
  return { storage, tab: () => new Identity(storage, new Storage("tab:", null)) };
}

test("a browser that was never here suggests a person of the config, else you", () => {
  equal(browser().tab().suggested(["ann", "bob"]), "ann");
  equal(browser().tab().suggested([]), "you");
  equal(browser().tab().current, null);
});

test("who has joined joins again, in every tab", () => {
  const { tab } = browser();
  tab().keep("ann", "secret");
  equal(tab().current, { name: "ann", token: "secret" });
});

test("a tab may be somebody else", () => {
  const { tab } = browser();
  const one = tab();
  one.keep("ann", "a");
  tab().keep("bob", "b");
  equal(one.current, { name: "ann", token: "a" });
  equal(tab().current, { name: "bob", token: "b" });
});

test("leaving forgets the token and keeps the name as a suggestion", () => {
  const { storage, tab } = browser();
  const one = tab();
  one.keep("ann", "secret");
  one.forget("ann");
  equal(tab().current, null);
  equal(tab().suggested(["bob"]), "ann");
  equal([...storage.memory.values()].some((text) => text.includes("secret")), false);
});

test("other tabs hear who has left", () => {
  const { storage, tab } = browser();
  const heard = [];
  const stop = tab().watch((name) => heard.push(name));
  tab().forget("ann");
  // Browsers tell other tabs only: this is what they get.
  const [key] = storage.keys().filter((each) => each === "left");
  window.dispatchEvent(new StorageEvent("storage", { key: storage.prefix + key }));
  stop();
  window.dispatchEvent(new StorageEvent("storage", { key: storage.prefix + key }));
  equal(heard, ["ann"]);
});

test("leaving as one does not touch the token of the other", () => {
  const { tab } = browser();
  const one = tab();
  one.keep("ann", "a");
  tab().keep("bob", "b");
  one.forget("ann");
  equal(tab().current, { name: "bob", token: "b" });
});
