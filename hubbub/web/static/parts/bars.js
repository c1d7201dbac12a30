// Limits as bars: usage against the maximum.
import { count, dollars } from "../core/numbers.js";
import { duration } from "../core/time.js";
import { html } from "../core/ui.js";
import { later } from "../texts-later.js";

const words = later.budget;
const LOW = 0.8; // from here on shown as nearly used up
const FORMATS = { wall_clock: (s) => duration(s * 1000), usd: dollars };
const shown = (limit, n) => (FORMATS[limit] ?? count)(n);

/** @param items  [{limit, title, used, of, reached}]; `used` is null for a limit of single messages. */
export function Bars({ items }) {
  return html`<ul class="bars">${items.map((item) => html`<${Bar} key=${item.title} ...${item} />`)}</ul>`;
}

function Bar({ limit, title, used, of, reached }) {
  if (used == null) {
    return html`<li><span class="name">${title}</span>
      <span class="number quiet">${words.atMost(shown(limit, of))}</span>
      ${reached && html`<span class="chip danger">${words.reached}</span>`}</li>`;
  }
  const part = of > 0 ? Math.min(1, used / of) : 1;
  const mood = reached || part >= 1 ? "danger" : part >= LOW ? "warn" : "";
  const says = words.of(shown(limit, used), shown(limit, of));
  return html`<li>
    <span class="name">${title}</span>
    <span class="number quiet">${says}</span>
    ${(reached || part >= 1) && html`<span class="chip danger">${words.reached}</span>`}
    <span class=${`bar-of ${mood}`} role="meter" aria-label=${title} aria-valuemin="0" aria-valuemax=${of}
      aria-valuenow=${Math.min(used, of)} aria-valuetext=${says}><i style=${{ width: `${part * 100}%` }}></i></span>
  </li>`;
}
