// All shortcuts, listed from the commands; keyboard navigation of the page.
import { dialogOf } from "../../parts/dialog.js";
import { lazy } from "../../parts/lazy.js";
import { t } from "../../texts.js";

const Help = lazy(() => import("./help.js").then((module) => module.Help));

export default function help(app) {
  const shown = dialogOf(app, Help);
  const commands = [
    {
      id: "help", title: t.help.title, slash: "help", hint: t.help.hint, keys: "?", icon: "keyboard",
      menu: 40, run: () => (shown.value = {}),
    },
    { id: "home", title: t.sidebar.home, keys: "g h", icon: "home", run: () => app.router.go("") },
    {
      id: "toggle-left", title: t.sidebar.showLeft, keys: "[", icon: "columnLeft",
      run: () => (app.leftShown.value = !app.leftShown.peek()),
    },
    {
      id: "toggle-right", title: t.sidebar.showRight, keys: "]", icon: "columnRight",
      when: ({ thread }) => thread !== null || app.route.peek().open !== null,
      run: ({ thread }) => (app.route.peek().open ? app.close() : app.open("thread", thread)),
    },
    {
      id: "escape", title: t.sidebar.escape, keys: "escape", hidden: true, order: 99,
      when: () => app.route.peek().open !== null, run: () => app.close(),
    },
  ];
  for (const command of commands) app.add.commands.add({ group: t.groups.page, ...command });
}
