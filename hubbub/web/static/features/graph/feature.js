// The live network: participants, agent activity, and messages between them.
import { html } from "../../core/ui.js";
import { Icon } from "../../parts/icon.js";
import { lazy } from "../../parts/lazy.js";
import { t } from "../../texts.js";

const Network = lazy(() => import("./network.js").then((module) => module.Network), "graph.css");

export default function graph(app) {
  app.add.views.add({ name: "network", view: Network, title: () => t.graph.title });
  app.add.bar.add({ order: 40, view: ToNetwork });
  app.add.commands.add({
    id: "network.open", title: t.graph.open, group: t.groups.going, icon: "graph", keys: "g n",
    run: () => app.router.go("network"),
  });
}

function ToNetwork({ app }) {
  return html`
    <a class="icon" href=${app.router.href("network")} aria-label=${t.graph.open} title=${t.graph.open}
      aria-current=${app.route.value.view === "network" ? "page" : null}><${Icon} name="graph" /><span class="word">${t.graph.word}</span></a>
  `;
}
