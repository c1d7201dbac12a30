import { Keys, namesOf, shownKeys } from "/static/core/keys.js";
import { Slot } from "/static/core/registry.js";
import { equal, test } from "./harness.js";

const PLAIN = { ctrlKey: false, metaKey: false, altKey: false, shiftKey: false, code: "" };
const names = (event, mac = false) => namesOf({ ...PLAIN, ...event }, mac);

/** Presses keys in a document of their own; gives the ids of the commands that ran. */
function pressing(...commands) {
  const [slot, ran, target] = [new Slot(), [], new EventTarget()];
  for (const [id, keys, more = {}] of commands) slot.add({ id, keys, run: () => ran.push(id), ...more });
  new Keys(slot, () => ({}), target);
  let at = 0;
  const press = (key, more = {}) => {
    const event = new KeyboardEvent("keydown", { key, cancelable: true, ...more });
    Object.defineProperty(event, "timeStamp", { value: (at += more.after ?? 100) });
    target.dispatchEvent(event);
    return event.defaultPrevented;
  };
  return { press, ran };
}

test("a stroke has the names under which a command may ask for it, on every keyboard", () => {
  const alt = { getModifierState: (name) => name === "AltGraph" };
  for (const [event, expected, mac] of [
    [{ key: "ArrowDown", altKey: true, shiftKey: true }, ["alt+shift+arrowdown"]],
    [{ key: "k", ctrlKey: true }, ["mod+k"]],
    [{ key: "k", metaKey: true }, ["mod+k"], true],
    [{ key: "k", ctrlKey: true }, ["ctrl+k"], true],
    // a character that needs Shift somewhere is the character
    [{ key: "?", shiftKey: true }, ["?"]],
    [{ key: "/", shiftKey: true, code: "Digit7" }, ["/"]],
    // with a modifier, a sign is found with and without Shift
    [{ key: "/", ctrlKey: true, shiftKey: true }, ["mod+/", "mod+shift+/"]],
    [{ key: "K", ctrlKey: true, shiftKey: true, code: "KeyK" }, ["mod+shift+k"]],
    // what AltGr makes is a character and no command with Control and Alt
    [{ key: "[", ctrlKey: true, altKey: true, code: "Digit8" }, ["["]],
    [{ key: "]", ...alt }, ["]"]],
    // on a Mac, what Option makes is found by the place of the key, and as what it is
    [{ key: "∆", altKey: true, code: "KeyJ" }, ["alt+∆", "alt+j", "∆"], true],
    [{ key: "[", altKey: true, code: "Digit5" }, ["alt+[", "alt+5", "["], true],
    // letters of other scripts are found by the place of the key
    [{ key: "л", code: "KeyK", ctrlKey: true }, ["mod+л", "mod+k"]],
    [{ key: "ш", code: "KeyI" }, ["ш", "i"]],
  ]) equal(names(event, mac), expected, JSON.stringify(event));
});

test("a stroke runs its command and nothing else happens", () => {
  const { press, ran } = pressing(["palette", "mod+k"], ["no", "r", { when: () => false }], ["next", ["x", "r"]], ["n", "n"]);
  equal([press("k", { ctrlKey: true }), press("k")], [true, false]);
  press("r");
  press("n", { isComposing: true }); // what an input method composes is no command
  press("n", { keyCode: 229 });
  equal(ran, ["palette", "next"]);
});

test("two strokes in a row are one command, unless one waits too long; Shift alone is no stroke", () => {
  const { press, ran } = pressing(["inbox", "g i"], ["help", "g ?"]);
  for (const [key, more] of [
    ["g"], ["i"], ["g"], ["i", { after: 5000 }], ["g"], ["Shift", { shiftKey: true }], ["?", { shiftKey: true }],
  ]) press(key, more);
  equal(ran, ["inbox", "help"]);
});

test("keys are shown as they stand on the keyboard", () => {
  equal(shownKeys("mod+k", false), [["Ctrl", "K"]]);
  equal(shownKeys("mod+k", true), [["⌘", "K"]]);
  equal(shownKeys("g i", false), [["G"], ["I"]]);
  equal(shownKeys("alt+shift+arrowdown", false), [["Alt", "Shift", "↓"]]);
});
