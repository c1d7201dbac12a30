// Placeholders of a view without content.
import { html } from "../core/ui.js";
import { t } from "../texts.js";
import { Icon } from "./icon.js";

/** An empty state: a picture, an explanation, and `children` with possible actions. */
export function Empty({ icon, title, text = null, children }) {
  return html`<div class="empty"><${Icon} name=${icon} size=${32} /><h2>${title}</h2>${text && html`<p>${text}</p>`}
    ${children}</div>`;
}

const NO_SUCH = ["bad_request", "unknown_thread"]; // their messages name operations and arguments

/** Loading, or failed to load: `found` is the result of `useWatched`, for an address of the page. */
export function Loading({ found: { value, error } }) {
  const text = error && (NO_SUCH.includes(error.code) ? t.notFound : error.message);
  if (error) return html`<p class="note danger" role="alert">${text}</p>`;
  return !value && html`<p class="quiet" role="status">${t.loading}</p>`;
}
