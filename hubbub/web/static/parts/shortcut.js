// Keys as on the keyboard.
import { shownKeys } from "../core/keys.js";
import { html } from "../core/ui.js";

/** `keys` of a command; of several the first. */
export function Shortcut({ keys }) {
  const first = [keys].flat()[0];
  if (!first) return null;
  const strokes = shownKeys(first);
  return html`<span class="keys">${strokes.map(
    (parts, n) => html`<span key=${n}>${parts.map((part) => html`<kbd key=${part}>${part}</kbd>`)}</span>`,
  )}</span>`;
}
