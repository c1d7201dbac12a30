// What a view shows while it has nothing to show.
import { html } from "../core/ui.js";
import { t } from "../texts.js";
import { Icon } from "./icon.js";

/** There is nothing: a picture, what that means, and `children`: what one can do. */
export function Empty({ icon, title, text = null, children }) {
  return html`<div class="empty"><${Icon} name=${icon} size=${32} /><h2>${title}</h2>${text && html`<p>${text}</p>`}
    ${children}</div>`;
}

/** It is asked for, or could not be had: `found` is what `useWatched` gives. */
export function Loading({ found: { value, error } }) {
  if (error) return html`<p class="note danger" role="alert">${error.message}</p>`;
  return !value && html`<p class="quiet" role="status">${t.loading}</p>`;
}
