import { Storage } from "/static/core/storage.js";
import { Identity } from "/static/features/join/identity.js";
import { equal, test } from "./harness.js";

/** A browser: `tab()` gives the identity of another tab of it. */
function browser() {
  const storage = new Storage(`test${Math.random()}:`, null);
  return { storage, tab: () => new Identity(storage, new Storage("tab:", null)) };
}

test("a browser that was never here suggests a person of the config, else you", () => {
  const one = browser().tab();
  equal([one.suggested(["ann", "bob"]), one.suggested([]), one.current], ["ann", "you", null]);
});

test("who has joined joins again in every tab, and a tab may be somebody else", () => {
  const { tab } = browser();
  const one = tab();
  one.keep("ann", "a");
  equal(tab().current, { name: "ann", token: "a" });
  tab().keep("bob", "b");
  equal([one.current, tab().current], [{ name: "ann", token: "a" }, { name: "bob", token: "b" }]);
  one.forget("ann");
  equal(tab().current, { name: "bob", token: "b" }, "which leaving as the one does not touch");
});

test("a refused token is forgotten, but not the valid one of another tab", () => {
  const { tab } = browser();
  tab().keep("ann", "valid");
  tab().forgetToken("ann", "mistyped");
  equal(tab().current.token, "valid");
  tab().forgetToken("ann", "valid");
  equal(tab().current.token, null);
});

test("leaving forgets the token, keeps the name as a suggestion, and other tabs hear of it", () => {
  const { storage, tab } = browser();
  const [one, heard] = [tab(), []];
  const stop = tab().watch((name) => heard.push(name));
  one.keep("ann", "secret");
  one.forget("ann");
  equal([tab().current, tab().suggested(["bob"])], [null, "ann"]);
  equal([...storage.memory.values()].some((text) => text.includes("secret")), false);
  // Browsers tell other tabs only: this is what they get.
  const told = () => window.dispatchEvent(new StorageEvent("storage", { key: `${storage.prefix}left` }));
  told();
  stop();
  told();
  equal(heard, ["ann"]);
});
