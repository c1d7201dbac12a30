// One choice out of a few, as buttons side by side.
import { html } from "../core/ui.js";

/** `choices` are [value, title] pairs; the one of `value` is pressed. */
export function Choice({ label, choices, value, choose }) {
  return html`<span class="choice" role="group" aria-label=${label}>
    ${choices.map(([each, title]) => html`<button key=${title} type="button" aria-pressed=${each === value}
      onClick=${() => choose(each)}>${title}</button>`)}</span>`;
}
