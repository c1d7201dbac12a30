// Below a message that was edited: that it was, and the way to what it said before.
import { html } from "../../core/ui.js";
import { words } from "./texts.js";

export function Edited({ show }) {
  return html`<button type="button" class="edited" title=${words.history} onClick=${show}>${words.edited}</button>`;
}
