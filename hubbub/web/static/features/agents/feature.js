// The agents of the network: how each does, and for owners its process and what it writes.
import { html } from "../../core/ui.js";
import { Icon } from "../../parts/icon.js";
import { lazy } from "../../parts/lazy.js";
import { t } from "../../texts.js";

const Agents = lazy(() => import("./agents.js").then((module) => module.Agents), "agents.css");

export default function agents(app) {
  app.add.views.add({ name: "agents", view: Agents, title: () => t.agents.title });
  app.add.sidebar.add({ id: "agents", order: 7, view: Line });
  app.add.commands.add({
    id: "agents", title: t.agents.title, group: t.groups.going, icon: "agent", keys: "g o",
    when: () => app.state.owner.peek(), run: () => app.router.go("agents"),
  });
}

/** On the left, for those who run them. */
function Line({ app }) {
  if (!app.state.owner.value) return null;
  const current = app.route.value.view === "agents";
  return html`<div class="pinned"><a class="list-row" href=${app.router.href("agents", [])}
    aria-current=${current ? "page" : null}><${Icon} name="agent" size=${17} className="sign" />
    <span class="name">${t.agents.title}</span></a></div>`;
}
