import { html } from "../../core/ui.js";
import { words } from "./texts.js";

/** Why there is nothing to see of a turn. */
export function Problem({ app, error }) {
  const early = error.code === "unknown_turn";
  const text = !early ? error.message : app.state.owner.value ? words.unknown : words.ownersOnly;
  return html`<p class="quiet" role="status">${text}</p>`;
}
