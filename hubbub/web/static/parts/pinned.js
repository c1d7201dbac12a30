// A row at the top of the left column that opens a view, and views with such a row.
import { html } from "../core/ui.js";
import { t } from "../texts.js";
import { Icon } from "./icon.js";

export function Pinned({ icon, title, href, current, unread = false, children }) {
  return html`<div class="pinned">
    <a class=${unread ? "list-row unread" : "list-row"} href=${href} aria-current=${current ? "page" : null}>
      <${Icon} name=${icon} size=${17} className="sign" /><span class="name">${title}</span>${children}
    </a>
  </div>`;
}

/** The row for `sidebar`; `others` are views that also highlight it. */
export const toView = (name, icon, title, others = []) => ({ app }) => {
  const current = [name, ...others].includes(app.route.value.view);
  return html`<${Pinned} icon=${icon} title=${title} href=${app.router.href(name)} current=${current} />`;
};

/**
 * A view with the command that opens it. `order`: its place on the left, if it has one; `others` as
 * above; `ofThread`: {title, order} in the menu of each thread, to show only that thread's items.
 */
export function addPage(app, { name, title, icon, keys, view, order = null, others = [], ofThread = null }) {
  app.add.views.add({ name, title: () => title, view });
  if (order) app.add.sidebar.add({ order, view: toView(name, icon, title, others) });
  if (ofThread) app.add.threadMenu.add({ ...ofThread, icon, run: ({ thread }) => app.router.go(name, [thread]) });
  app.add.commands.add({
    id: name, title, slash: name, keys, icon, group: t.groups.going, run: () => app.router.go(name),
  });
}
