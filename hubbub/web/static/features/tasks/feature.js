// Task boards of the mod `tasks`: columns by state, and a task on the right.
import { html } from "../../core/ui.js";
import { lazy } from "../../parts/lazy.js";
import { News } from "../../parts/news.js";
import { toView } from "../../parts/pinned.js";
import { t } from "../../texts.js";
import { words } from "./texts.js";

const SHEET = "tasks.css";
const Boards = lazy(() => import("./boards.js").then((module) => module.Boards), SHEET);
const Board = lazy(() => import("./board.js").then((module) => module.Board), SHEET);
const Asked = lazy(() => import("./deeds.js").then((module) => module.Asked), SHEET);
const TaskPanel = lazy(() => import("./panel.js").then((module) => module.TaskPanel), SHEET);

export default function tasks(app) {
  const news = new News(app, "mod.tasks", ({ task, board }) => task ?? board);
  app.add.views.add({
    name: "tasks", title: () => words.title,
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
  app.add.sidebar.add({ id: "tasks", order: 9, view: toView("tasks", "board", words.title) });
  app.add.threadMenu.add({
    title: words.ofThread, icon: "board", order: 30, run: ({ thread }) => app.router.go("tasks", [thread]),
  });
  app.add.commands.add({
    id: "tasks", title: words.title, slash: "tasks", keys: "g b", icon: "board", group: t.groups.going,
    run: () => app.router.go("tasks"),
  });
}
