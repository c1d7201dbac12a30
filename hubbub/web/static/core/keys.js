// Keyboard shortcuts: one listener finds the command for a keystroke, or for two in a row.

const SEQUENCE_MS = 2000; // between two keystrokes: people need a moment to find the second key
const CODE = /^(?:Key|Digit)([A-Z0-9])$/;
const SYMBOLS = { BracketLeft: "[", BracketRight: "]", Slash: "/", Comma: ",", Period: ".", Backslash: "\\" };
const MAC = /mac|iphone|ipad/i.test(navigator["userAgentData"]?.platform ?? navigator.platform ?? "");

/**
 * The possible names of a keystroke, likeliest first: modifiers in a fixed order, then the key, as in
 * `alt+shift+arrowdown`. "mod" is Command on a Mac and Control elsewhere. There is more than one
 * name because keyboards differ: Option produces other characters on a Mac, other scripts have no
 * Latin letters, "/" needs Shift on some layouts and AltGr produces characters on others.
 */
export function namesOf(event, mac = MAC) {
  const key = event.key.toLowerCase();
  const mod = mac ? event.metaKey : event.ctrlKey;
  const typed = key.length === 1;
  // AltGr is reported as Control and Alt; its character is an ordinary one.
  const graph = event.getModifierState?.("AltGraph") || (!mac && event.ctrlKey && event.altKey);
  if (typed && graph) return [key];
  const other = mac && event.ctrlKey ? ["ctrl"] : [];
  const held = [...other, ...(mod ? ["mod"] : []), ...(event.altKey ? ["alt"] : [])];
  const shift = event.shiftKey ? ["shift"] : [];
  const name = (shifted, of) => [...held, ...shifted, of].join("+");
  if (!typed) return [name(shift, key)];
  if (!held.length) return latin(key) ? [key] : [key, codeOf(event)].filter(Boolean);
  const letter = /\p{L}|\d/u.test(key);
  const names = [name(letter ? shift : [], key), name(shift, key)];
  const code = codeOf(event);
  if (code && (!latin(key) || (mac && event.altKey))) names.push(name(shift, code));
  if (mac && event.altKey && !mod) names.push(key); // Option produced this character
  return [...new Set(names)];
}

/** The key at this position of a Latin keyboard. */
function codeOf({ code = "" }) {
  return CODE.exec(code)?.[1].toLowerCase() ?? SYMBOLS[code] ?? null;
}

const latin = (key) => /^[\x20-\x7e]$/.test(key);

export function isWriting(target) {
  return target?.closest?.("input, textarea, select, [contenteditable=true]") != null;
}

/** Display form of keys: "mod+k" as ["Ctrl", "K"], two keystrokes with "then" between. */
export function shownKeys(keys, mac = MAC) {
  const names = {
    mod: mac ? "⌘" : "Ctrl", alt: mac ? "⌥" : "Alt", shift: mac ? "⇧" : "Shift",
    arrowup: "↑", arrowdown: "↓", arrowleft: "←", arrowright: "→",
    escape: "Esc", enter: "↵", end: "End", home: "Home", " ": "Space",
  };
  return keys.split(" ").map((stroke) =>
    stroke.split("+").map((part) => names[part] ?? (part.length === 1 ? part.toUpperCase() : part)),
  );
}

export class Keys {
  /** @param commands  The slot of commands; `context()` returns their context. */
  constructor(commands, context, target = document) {
    this.commands = commands;
    this.context = context;
    this.first = [];
    this.at = 0;
    target.addEventListener("keydown", (event) => this.pressed(event));
  }

  pressed(event) {
    // 229: the key was handled by an input method, in browsers without isComposing.
    if (event.defaultPrevented || event.isComposing || event.keyCode === 229 || !event.key) return;
    if (["Shift", "Control", "Alt", "Meta", "AltGraph"].includes(event.key)) return;
    if (document.querySelector("dialog[open]")) return;
    const names = namesOf(event);
    const bare = !/^(?:ctrl\+|mod\+|alt\+)/.test(names[0]) && !/^f\d+$/.test(names[0]);
    if (bare && isWriting(event.target) && event.key !== "Escape") {
      this.first = [];
      return;
    }
    const soon = event.timeStamp - this.at < SEQUENCE_MS;
    const both = soon ? this.first.flatMap((first) => names.map((name) => `${first} ${name}`)) : [];
    const context = this.context();
    const found = this.find(both, context) ?? this.find(names, context);
    this.first = bare && !found ? names : [];
    this.at = event.timeStamp;
    if (!found) return;
    event.preventDefault();
    found.run(context, "");
  }

  find(names, context) {
    for (const name of names) {
      const found = [...this.commands].find(
        (command) =>
          [command.keys ?? []].flat().includes(name) && (!command.when || command.when(context)),
      );
      if (found) return found;
    }
    return undefined;
  }
}
