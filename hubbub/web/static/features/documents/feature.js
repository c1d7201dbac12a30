// Shared documents of the mod `documents`: lists, a reader, an editor, history and comments.
import { html } from "../../core/ui.js";
import { lazy } from "../../parts/lazy.js";
import { News } from "../../parts/news.js";
import { toView } from "../../parts/pinned.js";
import { t } from "../../texts.js";
import { words } from "./texts.js";

const SHEET = "documents.css";
const List = lazy(() => import("./list.js").then((module) => module.List), SHEET);
const Document = lazy(() => import("./document.js").then((module) => module.Document), SHEET);

export default function documents(app) {
  const news = new News(app, "mod.documents", ({ id }) => id);
  app.add.views.add({
    name: "documents", title: () => words.title,
    view: (props) => html`<${List} key=${props.args[0]} news=${news} ...${props} />`,
  });
  app.add.views.add({
    name: "document", title: () => words.one,
    view: (props) => html`<${Document} news=${news} ...${props} />`,
  });
  app.add.sidebar.add({ id: "documents", order: 8, view: toView("documents", "document", words.title, ["document"]) });
  app.add.threadMenu.add({
    title: words.ofThread, icon: "document", order: 20,
    run: ({ thread }) => app.router.go("documents", [thread]),
  });
  app.add.commands.add({
    id: "documents", title: words.title, slash: "documents", keys: "g d", icon: "document", group: t.groups.going,
    run: () => app.router.go("documents"),
  });
}
