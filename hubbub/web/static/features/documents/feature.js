// Shared documents of the mod `documents`: lists, a reader, an editor, history and comments.
import { html } from "../../core/ui.js";
import { lazy } from "../../parts/lazy.js";
import { ModSignals } from "../../parts/mod-signals.js";
import { addPage } from "../../parts/pinned.js";
import { words } from "./texts.js";

const SHEET = "documents.css";
const List = lazy(() => import("./list.js").then((module) => module.List), SHEET);
const Document = lazy(() => import("./document.js").then((module) => module.Document), SHEET);

export default function documents(app) {
  const news = new ModSignals(app, "mod.documents", ({ id }) => id);
  addPage(app, {
    name: "documents", title: words.title, icon: "document", keys: "g d", order: 8, others: ["document"],
    view: (props) => html`<${List} key=${props.args[0]} news=${news} ...${props} />`,
    ofThread: { title: words.ofThread, order: 20 },
  });
  app.add.views.add({
    name: "document", title: () => words.one,
    view: (props) => html`<${Document} news=${news} ...${props} />`,
  });
}
