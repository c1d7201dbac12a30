// `#/costs`: costs by day, agent and thread, and the remaining daily limits.
import { count, dollars } from "../../core/numbers.js";
import { dayName } from "../../core/time.js";
import { html, useState } from "../../core/ui.js";
import { AgentViews } from "../../parts/agent-views.js";
import { Empty } from "../../parts/empty.js";
import { activitySigns, useWatched } from "../../parts/watched.js";
import { later } from "../../texts-later.js";
import { t } from "../../texts.js";
import { Spans, summed, Table, Today } from "./spending.js";

const words = later.spending;
const MOST = 50; // rows per table
const DAY_MS = 86_400_000;

export function Costs({ app }) {
  const [days, setDays] = useState(7);
  const { value, error } = useWatched(() => app.client.call("read_spending", { days, turns: true }), {
    key: `${days}`, signs: () => activitySigns(app, null),
  });
  return html`
    <header class="title"><h1 tabindex="-1" data-focus>${words.costs}</h1>
      <div class="tools"><${Spans} days=${days} choose=${setDays} /></div></header>
    <div class="page spending costs">
      <${AgentViews} app=${app} />
      ${error && html`<p class="note danger" role="alert">${error.message}</p>`}
      ${value && (value.rows.length ? html`<${All} app=${app} value=${value} days=${days} />`
        : html`<${Empty} icon="poll" title=${words.nothing} text=${words.nothingYet} />`)}
    </div>
  `;
}

function All({ app, value, days }) {
  const { usd, tokens_in, tokens_out } = value.total;
  const spends = usd + tokens_in + tokens_out > 0;
  return html`
    <p class="totals">${spends ? html`<b>${usd ? dollars(usd) : words.noPrice}</b> · ${words.tokensIn(count(tokens_in), count(tokens_out))}` : words.noModels}</p>
    ${spends && !usd && html`<p class="note">${words.setPrice}
      <a href=${app.router.href("models", [])}>${t.agents.models}</a></p>`}
    <${Today} today=${value.today ?? []} />
    ${spends && days > 1 && html`<${Chart} rows=${summed(value.rows, "day")} days=${days} />`}
    <${Table} app=${app} rows=${summed(value.rows, "agent")} of=${words.agent} most=${MOST} />
    ${named(value.models).length > 0 && html`<${Table} app=${app} rows=${named(value.models)} of=${words.model} most=${MOST} />`}
    ${named(value.people).length > 0 && html`<${Table} app=${app} rows=${named(value.people)} of=${words.person} most=${MOST} />`}
    <${Table} app=${app} rows=${summed(value.rows, "thread_id")} of=${words.thread} most=${MOST} />
  `;
}

const named = (found = []) => found.map(({ name, sums }) => ({ id: name, sums }));

/** A bar per day: cost, or tokens if no model has a price. */
function Chart({ rows, days }) {
  const sums = new Map(rows.map(({ id, sums }) => [id, sums]));
  const all = Array.from({ length: days }, (_, n) => new Date(Date.now() - (days - 1 - n) * DAY_MS).toISOString().slice(0, 10));
  const money = rows.some(({ sums: { usd } }) => usd > 0);
  const of = (day) => {
    const { usd = 0, tokens_in: read = 0, tokens_out: written = 0 } = sums.get(day) ?? {};
    return money ? usd : read + written;
  };
  const most = Math.max(...all.map(of));
  const title = (day) => dayName(`${day}T12:00`); // the hub's days are UTC; noon is on the same day in every time zone
  const says = (day) => `${title(day)}: ${money ? dollars(of(day)) : words.tokensN(count(of(day)))}`;
  return html`<figure>
    <ol class="chart" aria-label=${words.byDay}>
      ${all.map((day) => html`<li key=${day} title=${says(day)}>
        <i style=${{ height: `${(100 * of(day)) / most}%` }}></i><span class="hidden-text">${says(day)}</span></li>`)}
    </ol>
    <figcaption class="quiet"><span>${title(all[0])}</span><span>${title(all.at(-1))}</span></figcaption>
  </figure>`;
}
