// The search of the mod `search`: over messages, documents and files.
import { html } from "../../core/ui.js";
import { Icon } from "../../parts/icon.js";
import { lazy } from "../../parts/lazy.js";
import { t } from "../../texts.js";
import { argsOf } from "./asked.js";
import { words } from "./texts.js";

const Search = lazy(() => import("./search.js").then((module) => module.Search), "search.css");

export default function search(app) {
  const look = (asked) => app.router.go("search", argsOf(asked));
  app.add.views.add({
    name: "search", title: ([query]) => (query ? words.of(query) : words.title), view: Search,
  });
  app.add.sidebar.add({ id: "search", order: 6, view: Link });
  app.add.finders.add({ title: words.everything, icon: "search", run: (query) => look({ query }) });
  app.add.threadMenu.add({
    title: words.inThread, icon: "search", order: 10, run: ({ thread }) => look({ query: "", thread }),
  });
  app.add.commands.add({
    id: "search", title: words.title, slash: "search", hint: words.hint, keys: "g s", icon: "search",
    group: t.groups.going, run: (context, query = "") => look({ query }),
  });
}

function Link({ app }) {
  const current = app.route.value.view === "search";
  return html`<div class="pinned">
    <a class="list-row" href=${app.router.href("search")} aria-current=${current ? "page" : null}>
      <${Icon} name="search" size=${17} className="sign" /><span class="name">${words.title}</span>
    </a>
  </div>`;
}
