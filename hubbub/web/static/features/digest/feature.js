// What happened since the last visit: the mod `digest`.
import { html } from "../../core/ui.js";
import { Icon } from "../../parts/icon.js";
import { lazy } from "../../parts/lazy.js";
import { t } from "../../texts.js";
import { words } from "./texts.js";

const Digest = lazy(() => import("./digest.js").then((module) => module.Digest), "digest.css");

export default function digest(app) {
  app.add.views.add({ name: "digest", title: () => words.title, view: Digest });
  app.add.sidebar.add({ id: "digest", order: 7, view: Link });
  app.add.commands.add({
    id: "digest", title: words.title, slash: "digest", keys: "g w", icon: "list", group: t.groups.going,
    run: () => app.router.go("digest"),
  });
}

function Link({ app }) {
  const current = app.route.value.view === "digest";
  return html`<div class="pinned">
    <a class="list-row" href=${app.router.href("digest")} aria-current=${current ? "page" : null}>
      <${Icon} name="list" size=${17} className="sign" /><span class="name">${words.title}</span>
    </a>
  </div>`;
}
