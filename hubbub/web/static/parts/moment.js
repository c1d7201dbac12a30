// A time: the time of day, with the date if it was not today; in full as a tooltip.
import { dayName, dayOf, fullTime, timeOf, today } from "../core/time.js";
import { html } from "../core/ui.js";

export function Moment({ at }) {
  const day = dayOf(at) === today.value ? "" : `${dayName(at)}, `;
  return html`<time datetime=${at} title=${fullTime(at)}>${day}${timeOf(at)}</time>`;
}
