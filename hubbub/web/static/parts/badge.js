// A number beside a name; its meaning is for screen readers and the tooltip.
import { html } from "../core/ui.js";

export function Badge({ mention = false, shown, told }) {
  return html`<span class=${mention ? "badge mention" : "badge"} title=${told}>
    <span aria-hidden="true">${shown}</span><span class="hidden-text">${told}</span></span>`;
}
