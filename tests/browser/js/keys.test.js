import { Keys, namesOf, shownKeys } from "/static/core/keys.js";
import { Slot } from "/static/core/registry.js";
import { equal, test } from "./harness.js";

const PLAIN = { ctrlKey: false, metaKey: false, altKey: false, shiftKey: false, code: "" };
const names = (event, mac = false) => namesOf({ ...PLAIN, ...event }, mac);

/** Presses keys in a document of their own; gives the ids of the commands that ran. */
function pressing(commands, { when = 0 } = {}) {
  const slot = new Slot();
  const ran = [];
  for (const [id, keys, more = {}] of commands) slot.add({ id, keys, run: () => ran.push(id), ...more });
  const target = new EventTarget();
  new Keys(slot, () => ({}), target);
  let at = when;
  const press = (key, more = {}) => {
    const event = new KeyboardEvent("keydown", { key, cancelable: true, ...more });
    Object.defineProperty(event, "timeStamp", { value: (at += more.after ?? 100) });
    target.dispatchEvent(event);
    return event;
  };
  return { press, ran };
}

test("modifiers come in a fixed order, and mod is Control or Command", () => {
  equal(names({ key: "ArrowDown", altKey: true, shiftKey: true }), ["alt+shift+arrowdown"]);
  equal(names({ key: "k", ctrlKey: true }), ["mod+k"]);
  equal(names({ key: "k", metaKey: true }, true), ["mod+k"]);
  equal(names({ key: "k", ctrlKey: true }, true), ["ctrl+k"]);
});

test("a character that needs Shift somewhere is the character", () => {
  equal(names({ key: "?", shiftKey: true }), ["?"]);
  equal(names({ key: "/", shiftKey: true, code: "Digit7" }), ["/"]);
});

test("with a modifier, a sign is found with and without Shift", () => {
  equal(names({ key: "/", ctrlKey: true, shiftKey: true }), ["mod+/", "mod+shift+/"]);
  equal(names({ key: "K", ctrlKey: true, shiftKey: true, code: "KeyK" }), ["mod+shift+k"]);
});

test("what AltGr makes is a character and no command with Control and Alt", () => {
  equal(names({ key: "[", ctrlKey: true, altKey: true, code: "Digit8" }), ["["]);
  const linux = { key: "]", altKey: false, getModifierState: (name) => name === "AltGraph" };
  equal(names(linux), ["]"]);
});

test("on a Mac, what Option makes is found by the place of the key, and as what it is", () => {
  equal(names({ key: "∆", altKey: true, code: "KeyJ" }, true), ["alt+∆", "alt+j", "∆"]);
  equal(names({ key: "[", altKey: true, code: "Digit5" }, true), ["alt+[", "alt+5", "["]);
});

test("letters of other scripts are found by the place of the key", () => {
  equal(names({ key: "л", code: "KeyK", ctrlKey: true }), ["mod+л", "mod+k"]);
  equal(names({ key: "ш", code: "KeyI" }), ["ш", "i"]);
});

test("a stroke runs its command and nothing else happens", () => {
  const { press, ran } = pressing([["palette", "mod+k"]]);
  equal(press("k", { ctrlKey: true }).defaultPrevented, true);
  equal(press("k").defaultPrevented, false);
  equal(ran, ["palette"]);
});

test("two strokes in a row are one command, unless one waits too long", () => {
  const { press, ran } = pressing([["inbox", "g i"]]);
  press("g");
  press("i");
  press("g");
  press("i", { after: 5000 });
  equal(ran, ["inbox"]);
});

test("Shift alone does not break two strokes in a row", () => {
  const { press, ran } = pressing([["help", "g ?"]]);
  press("g");
  press("Shift", { shiftKey: true });
  press("?", { shiftKey: true });
  equal(ran, ["help"]);
});

test("a command that does not apply leaves the stroke to the next one", () => {
  const { press, ran } = pressing([["first", "r", { when: () => false }], ["second", ["x", "r"]]]);
  press("r");
  equal(ran, ["second"]);
});

test("what an input method composes is no command", () => {
  const { press, ran } = pressing([["compose", "n"]]);
  press("n", { isComposing: true });
  press("n", { keyCode: 229 });
  equal(ran, []);
});

test("keys are shown as they stand on the keyboard", () => {
  equal(shownKeys("mod+k", false), [["Ctrl", "K"]]);
  equal(shownKeys("mod+k", true), [["⌘", "K"]]);
  equal(shownKeys("g i", false), [["G"], ["I"]]);
  equal(shownKeys("alt+shift+arrowdown", false), [["Alt", "Shift", "↓"]]);
});
