// The cost of an agent, or of the work in a thread, shown in their panels.
import { repliedSeq } from "../../core/ids.js";
import { count, dollars } from "../../core/numbers.js";
import { html, useState } from "../../core/ui.js";
import { activitySigns, useWatched } from "../../parts/watched.js";
import { later } from "../../texts-later.js";
import { Bars } from "../../parts/bars.js";
import { Choice } from "../../parts/choice.js";

const words = later.spending;
const SPANS = [1, 7, 30];
const SHOWN = 6;

export function Spending({ app, agent = null, thread = null }) {
  const [days, setDays] = useState(1);
  const about = agent ? { agent } : { thread };
  const { value } = useWatched(() => app.client.call("read_spending", { ...about, days }), {
    key: `${agent} ${thread} ${days}`,
    signs: () => activitySigns(app, agent && [agent]),
  });
  if (!value) return null;
  const rows = summed(value.rows, agent ? "thread_id" : "agent");
  return html`<section class="spending" aria-label=${words.title}>
    <div class="section"><h3>${words.title}</h3><${Spans} days=${days} choose=${setDays} /></div>
    ${rows.length
      ? html`<${Table} app=${app} rows=${rows} of=${agent ? words.thread : words.agent} />`
      : html`<p class="quiet small">${words.nothing}</p>`}
    <${Today} today=${value.today ?? []} />
  </section>`;
}

/** A choice of periods. */
export function Spans({ days, choose }) {
  return html`<${Choice} label=${words.days} choices=${SPANS.map((n) => [n, words.spans[n]])} value=${days} choose=${choose} />`;
}

/** Rows of several days summed by key, the most expensive first. */
export function summed(rows, key) {
  const found = new Map();
  for (const row of rows) {
    found.set(row[key], plus(found.get(row[key]) ?? {}, row.sums));
  }
  const worth = ([, { usd = 0, tokens_in = 0, tokens_out = 0 }]) => usd * 1e9 + tokens_in + tokens_out;
  return [...found].sort((a, b) => worth(b) - worth(a)).map(([id, sums]) => ({ id, sums }));
}

function plus(...all) {
  const sums = {};
  for (const [name, n] of all.flatMap(Object.entries)) sums[name] = (sums[name] ?? 0) + n;
  return sums;
}

export function Table({ app, rows, of, most = SHOWN }) {
  const title = (id) => (of === words.thread ? threadTitle(app, id) : of === words.model ? id : app.state.nameOf(id));
  const href = (id) => of === words.thread && app.router.href("thread", [id]);
  const rest = rows.length - most;
  return html`<table>
    <thead><tr><th>${of}</th><th class="number">${words.turns}</th><th class="number">${words.tokens}</th>
      <th class="number">${words.cost}</th></tr></thead>
    <tbody>
      ${rows.slice(0, most).map(
        ({ id, sums }) => html`<${Line} key=${id} title=${title(id)} href=${href(id)} sums=${sums} />`,
      )}
      ${rest > 0 && html`<tr><td class="quiet" colspan="4">${words.others(rest)}</td></tr>`}
    </tbody>
    ${rows.length > 1 && html`<tfoot><${Line} title=${words.total} sums=${plus(...rows.map(({ sums }) => sums))} /></tfoot>`}
  </table>`;
}

/** With the message replied to, since a thread and its reply threads are separate rows. */
function threadTitle(app, id) {
  const seq = repliedSeq(id);
  return seq === null ? app.state.titleOf(id) : `${app.state.titleOf(id)} › m${seq}`;
}

function Line({ title, href, sums: { turns = 0, tokens_in = 0, tokens_out = 0, usd = 0 } }) {
  return html`<tr>
    <th scope="row">${href ? html`<a href=${href}>${title}</a>` : title}</th>
    <td class="number">${count(turns)}</td>
    <td class="number">${count(tokens_in + tokens_out)}</td>
    <td class="number">${usd ? dollars(usd) : tokens_in + tokens_out ? words.noPrice : "–"}</td>
  </tr>`;
}

/** The daily limits, if there are any. */
export function Today({ today }) {
  if (!today.length) return null;
  const { limits, whose: names, dailyOf, daily } = later.budget;
  const items = today.map(({ limit, whose, used, of }) => ({
    limit, used, of, title: dailyOf(names[whose], limits[limit]), reached: used >= of,
  }));
  return html`<h4>${daily}</h4><${Bars} items=${items} />`;
}
