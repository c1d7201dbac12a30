// The search of the mod `search`: over messages, documents and files.
import { lazy } from "../../parts/lazy.js";
import { toView } from "../../parts/pinned.js";
import { t } from "../../texts.js";
import { argsOf } from "./query.js";
import { words } from "./texts.js";

const Search = lazy(() => import("./search.js").then((module) => module.Search), "search.css");

export default function search(app) {
  const look = (asked) => app.router.go("search", argsOf(asked));
  app.add.views.add({
    name: "search", title: ([query]) => (query ? words.of(query) : words.title), view: Search,
  });
  app.add.sidebar.add({ order: 6, view: toView("search", "search", words.title) });
  app.add.finders.add({ title: words.everything, icon: "search", run: (query) => look({ query }) });
  app.add.threadMenu.add({
    title: words.inThread, icon: "search", order: 10, run: ({ thread }) => look({ query: "", thread }),
  });
  app.add.commands.add({
    id: "search", title: words.title, slash: "search", hint: words.hint, keys: "g s", icon: "search",
    group: t.groups.going, run: (context, query = "") => look({ query }),
  });
}
