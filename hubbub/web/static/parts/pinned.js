// A line on top of the left column that leads to a view.
import { html } from "../core/ui.js";
import { Icon } from "./icon.js";

export function Pinned({ icon, title, href, current, unread = false, children }) {
  return html`<div class="pinned">
    <a class=${unread ? "list-row unread" : "list-row"} href=${href} aria-current=${current ? "page" : null}>
      <${Icon} name=${icon} size=${17} className="sign" /><span class="name">${title}</span>${children}
    </a>
  </div>`;
}

/** The same for `sidebar`; `others` are views that count as this one. */
export const toView = (name, icon, title, others = []) => ({ app }) => {
  const current = [name, ...others].includes(app.route.value.view);
  return html`<${Pinned} icon=${icon} title=${title} href=${app.router.href(name)} current=${current} />`;
};
