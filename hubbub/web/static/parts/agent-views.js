// Links between the views about agents, at the top of each, for those who can see all of them.
import { html } from "../core/ui.js";
import { t } from "../texts.js";

const VIEWS = { agents: t.agents.title, models: t.agents.models, costs: t.control.costs, turns: t.turns.list };

export function AgentViews({ app }) {
  const { view } = app.route.value;
  return app.state.owner.value && html`<nav class="choice" aria-label=${t.agents.title}>
    ${Object.entries(VIEWS).map(([name, title]) => html`<a key=${name} href=${app.router.href(name, [])}
      aria-current=${name === view ? "page" : null}>${title}</a>`)}
  </nav>`;
}
