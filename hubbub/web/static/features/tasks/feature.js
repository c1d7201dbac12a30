// Task boards of the mod `tasks`: columns by state, and a task on the right.
import { html } from "../../core/ui.js";
import { lazy } from "../../parts/lazy.js";
import { ModSignals } from "../../parts/mod-signals.js";
import { addPage } from "../../parts/pinned.js";
import { words } from "./texts.js";

const SHEET = "tasks.css";
const Boards = lazy(() => import("./boards.js").then((module) => module.Boards), SHEET);
const Board = lazy(() => import("./board.js").then((module) => module.Board), SHEET);
const Asked = lazy(() => import("./actions.js").then((module) => module.Asked), SHEET);
const TaskPanel = lazy(() => import("./panel.js").then((module) => module.TaskPanel), SHEET);

export default function tasks(app) {
  const news = new ModSignals(app, "mod.tasks", ({ task, board }) => task ?? board);
  addPage(app, {
    name: "tasks", title: words.title, icon: "board", keys: "g b", order: 9,
    ofThread: { title: words.ofThread, order: 30 },
    view: (props) => {
      const [thread, board = null] = props.args;
      return thread
        ? html`<${Board} key=${`${thread} ${board}`} app=${props.app} news=${news} thread=${thread} board=${board} />`
        : html`<${Boards} app=${props.app} news=${news} />`;
    },
  });
  app.add.panels.add({
    kind: "task", order: 10, title: words.one,
    view: (props) => html`<${TaskPanel} news=${news} ...${props} />`,
  });
  const isShown = ({ view, open }) => view === "tasks" || open?.kind === "task";
  app.add.layers.add({ view: () => isShown(app.route.value) && html`<${Asked} app=${app} />` });
}
