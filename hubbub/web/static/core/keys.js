// The keyboard: one listener finds the command that a stroke, or two in a row, belongs to.

const SEQUENCE_MS = 1200;

/** A stroke's name: modifiers in a fixed order, then the key, as `alt+shift+arrowdown`. */
export function nameOf(event) {
  const parts = [];
  if (event.ctrlKey || event.metaKey) parts.push("mod");
  if (event.altKey) parts.push("alt");
  const key = event.key.toLowerCase();
  if (event.shiftKey && (key.length > 1 || parts.length)) parts.push("shift");
  return [...parts, key].join("+");
}

export function isWriting(target) {
  return target?.closest?.("input, textarea, select, [contenteditable=true]") != null;
}

export class Keys {
  /** @param commands  The slot of commands; `context()` gives what they run with. */
  constructor(commands, context, target = document) {
    Object.assign(this, { commands, context });
    this.first = "";
    this.at = 0;
    target.addEventListener("keydown", (event) => this.pressed(event));
  }

  pressed(event) {
    if (event.defaultPrevented || event.isComposing) return;
    const stroke = nameOf(event);
    const writing = isWriting(event.target);
    if (document.querySelector("dialog[open]")) return;
    const now = event.timeStamp;
    const both = this.first && now - this.at < SEQUENCE_MS ? `${this.first} ${stroke}` : null;
    const context = this.context();
    const found = (both && this.find(both, context)) || this.find(stroke, context);
    const bare = !stroke.includes("mod+") && !stroke.includes("alt+") && !/^f\d+$/.test(stroke);
    if (writing && bare && stroke !== "escape") return;
    if (found) {
      event.preventDefault();
      this.first = "";
      found.run(context, "");
      return;
    }
    this.first = bare ? stroke : "";
    this.at = now;
  }

  find(stroke, context) {
    return [...this.commands].find(
      (command) =>
        [command.keys ?? []].flat().includes(stroke) && (!command.when || command.when(context)),
    );
  }
}
