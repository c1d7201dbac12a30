// The agents of the network: their state, and for owners their process, output and editor.
import { html } from "../../core/ui.js";
import { lazy } from "../../parts/lazy.js";
import { toView } from "../../parts/pinned.js";
import { t } from "../../texts.js";

const Agents = lazy(() => import("./agents.js").then((module) => module.Agents), "agents.css");
const AgentEditor = lazy(() => import("./editor.js").then((module) => module.AgentEditor), "agents.css");
const Models = lazy(() => import("./models.js").then((module) => module.Models), "agents.css");
const { title, make, models } = t.agents;

export default function agents(app) {
  app.add.views.add({ name: "agents", view: Agents, title: () => title });
  app.add.views.add({ name: "agent", view: AgentEditor, title: ([agent]) => agent || make });
  app.add.views.add({ name: "models", view: Models, title: () => models });
  app.add.sidebar.add({ order: 7, view: ForOwners });
  const go = (id, icon, title, keys) => app.add.commands.add({
    id, title, group: t.groups.going, icon, keys, when: () => app.state.owner.peek(), run: () => app.router.go(id),
  });
  go("agents", "agent", title, "g o");
  go("agent", "plus", make);
  go("models", "agent", models);
}

/** On the left, for owners. */
const Line = toView("agents", "agent", title, ["agent", "models", "costs", "turns", "turn", "control"]);
const ForOwners = ({ app }) => app.state.owner.value && html`<${Line} app=${app} />`;
