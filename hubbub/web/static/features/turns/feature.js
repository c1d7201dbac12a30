// Inspecting turns: one, two side by side, and the latest ones.
import { turnOf } from "../../core/messages.js";
import { html } from "../../core/ui.js";
import { dialogOf } from "../../parts/dialog.js";
import { lazy } from "../../parts/lazy.js";
import { t } from "../../texts.js";

const CaseDialog = lazy(() => import("./case.js").then((module) => module.CaseDialog), "turns.css");
const Comparison = lazy(() => import("./compare.js").then((module) => module.Comparison), "turns.css");
const LatestTurns = lazy(() => import("./list.js").then((module) => module.LatestTurns), "turns.css");
const TurnList = lazy(() => import("./list.js").then((module) => module.TurnList), "turns.css");
const TurnPanel = lazy(() => import("./inspector.js").then((module) => module.TurnPanel), "turns.css");
const TurnView = lazy(() => import("./inspector.js").then((module) => module.TurnView), "turns.css");

export default function turns(app) {
  app.add.views.add({ name: "turn", view: TurnView, title: ([id = ""]) => t.turns.title(id) });
  app.add.views.add({ name: "turns", view: Turns, title: () => t.turns.list });
  app.add.panels.add({ kind: "turn", order: 10, view: TurnPanel });
  app.add.panels.add({ kind: "participant", order: 60, view: LatestTurns });
  const open = {
    title: t.turns.open, icon: "list", when: ({ message }) => message !== null && turnOf(message) !== null,
    run: ({ message }) => app.open("turn", turnOf(message)),
  };
  app.add.commands.add({ ...open, id: "turn.open", group: t.conversation.group, keys: "i" });
  const when = (context) => app.state.owner.peek() && open.when(context);
  app.add.messageMenu.add({ ...open, order: 40, keys: "I", when });
  const about = dialogOf(app, CaseDialog);
  app.add.messageMenu.add({
    title: t.turns.branch, icon: "turn", order: 41, when,
    run: ({ message }) => app.router.go("turn", [turnOf(message), "branch"]),
  });
  app.add.messageMenu.add({
    title: t.turns.makeCase, icon: "copy", order: 42, when, run: ({ message }) => (about.value = { message }),
  });
  app.add.commands.add({
    id: "turns.list", title: t.turns.list, group: t.groups.going, icon: "list", keys: "g t",
    when: () => app.state.owner.peek(),
    run: () => app.router.go("turns"),
  });
}

/** `#/turns`, `#/turns/<agent>`, `#/turns/<a>/<b>`. */
function Turns({ app, args: [first = null, second] }) {
  if (second) return html`<${Comparison} key=${`${first} ${second}`} app=${app} ids=${[first, second]} />`;
  return html`<${TurnList} key=${first} app=${app} agent=${first || null} />`;
}
