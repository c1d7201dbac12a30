// The limits and costs of an interaction: bars above its diagram.
import { html } from "../../core/ui.js";
import { activitySigns, useWatched } from "../../parts/watched.js";
import { later } from "../../texts-later.js";
import { Bars } from "../../parts/bars.js";

const words = later.budget;
const ORDER = ["wakes", "agents", "wall_clock", "tokens", "usd", "hops", "fan_out"];

export function Budget({ app, id }) {
  const { value } = useWatched(() => app.client.call("read_budget", { interaction: id }), {
    key: id,
    signs: () => [app.state.arrived.value?.interaction_id === id && app.state.arrived.value, ...activitySigns(app, null)],
    goesOn: (found) => found?.active ?? false,
  });
  if (!value) return null; // only its participants can see it
  const { limits, used, reached = [] } = value;
  const items = ORDER.filter((limit) => limits[limit] != null).map((limit) => ({
    limit,
    title: words.limits[limit],
    used: used[limit] ?? null,
    of: limits[limit],
    reached: reached.includes(limit),
  }));
  if (!items.length) return null;
  return html`<section class="budget" aria-label=${words.title}>
    <div class="section"><h2>${words.title}</h2></div>
    <${Bars} items=${items} />
  </section>`;
}
