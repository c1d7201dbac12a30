// Placeholders of a view without content.
import { html } from "../core/ui.js";
import { t } from "../texts.js";
import { Icon } from "./icon.js";

/** An empty state: a picture, an explanation, and `children` with possible actions. */
export function Empty({ icon, title, text = null, children }) {
  return html`<div class="empty"><${Icon} name=${icon} size=${32} /><h2>${title}</h2>${text && html`<p>${text}</p>`}
    ${children}</div>`;
}

/** Loading, or failed to load: `found` is the result of `useWatched`. */
export function Loading({ found: { value, error } }) {
  if (error) return html`<p class="note danger" role="alert">${error.message}</p>`;
  return !value && html`<p class="quiet" role="status">${t.loading}</p>`;
}
