// A line below an answer: the agents involved, duration and cost, with links to the diagram and the
// the turn.
import { turnOf } from "../../core/messages.js";
import { count, dollars } from "../../core/numbers.js";
import { duration } from "../../core/time.js";
import { html } from "../../core/ui.js";
import { Icon } from "../../parts/icon.js";
import { activitySigns, useWatched } from "../../parts/watched.js";
import { t } from "../../texts.js";
import { readInteraction, totalsOf } from "./reading.js";

const AFTER_MS = 200; // no request while scrolling past
const MOST = 100;
const over = new Map(); // "who log interaction" -> its totals, once it has ended

export function CostLine({ app, message }) {
  const id = message.interaction_id;
  const key = `${app.state.me.value} ${app.state.epoch.value} ${id}`;
  const known = over.get(key);
  const { value } = useWatched(async () => over.get(key) ?? look(app, id, key), {
    key, after: known ? 0 : AFTER_MS,
    signs: () => [app.state.arrived.value?.interaction_id === id && app.state.arrived.value, ...activitySigns(app, null)],
    goesOn: (found) => found !== null && !over.has(key),
  });
  const found = known ?? value;
  const turn = app.state.owner.value ? turnOf(message) : null;
  return html`<p class="took" data-loading=${found ? null : ""}>
    <a href=${app.router.href("interaction", [id])} title=${t.interaction.open}>
      <${Icon} name="sequence" size=${14} />${found ? inWords(found) : t.interaction.asDiagram}</a>
    ${turn && html`<button type="button" class="plain" title=${t.turns.open}
      onClick=${() => app.open("turn", turn)}><${Icon} name="list" size=${14} /><span class="if-room">${t.panelTitles.turn}</span></button>
      ${found?.tokensIn > 0 && html`<a href=${app.router.href("turn", [turn, "try"])} title=${t.turns.tryAgain}>
        <${Icon} name="turn" size=${14} /><span class="if-room">${t.turns.tryAgain}</span></a>`}`}
  </p>`;
}

async function look(app, id, key) {
  const page = await readInteraction(app.client, id, MOST);
  const found = totalsOf(page);
  if (page.wakes.every(({ state }) => state === "ended")) over.set(key, found);
  return found;
}

/** "3 agents · 4 calls · 0.4 s · $0.002" */
function inWords({ agents, calls, took, cost }) {
  const parts = [t.interaction.agents(agents), calls && t.interaction.calls(count(calls)), duration(took), dollars(cost)];
  return parts.filter(Boolean).join(" · ");
}
