// The latest turns, newest first: `#/turns`, or `#/turns/<agent>` for those of one.
import { count, dollars } from "../../core/numbers.js";
import { visible } from "../../core/markdown.js";
import { duration } from "../../core/time.js";
import { html, useState } from "../../core/ui.js";
import { AgentViews } from "../../parts/agent-views.js";
import { Moment } from "../../parts/moment.js";
import { Outcome } from "../../parts/outcome.js";
import { t } from "../../texts.js";
import { useTurns } from "./use-turn.js";
import { words } from "./texts.js";

const PAGE = 50;
const IN_PANEL = 8;

export function TurnList({ app, agent }) {
  const [most, setMost] = useState(PAGE);
  const { value: found, error } = useTurns(app, agent, most);
  const turns = found?.turns;
  return html`
    <header class="title">
      <h1>${t.turns.list}</h1>
      <${Filter} app=${app} agent=${agent} />
    </header>
    <div class="page turn-list">
      <${AgentViews} app=${app} />
      ${!app.state.owner.value && html`<p class="quiet">${words.ownersOnly}</p>`}
      ${error && html`<p class="problem" role="alert">${error.message}</p>`}
      ${turns && !turns.length && html`<p class="quiet">${words.none}</p>`}
      ${turns?.length > 0 && html`<${Table} app=${app} turns=${turns} />`}
      ${found?.more &&
      html`<button type="button" onClick=${() => setMost(most + PAGE)}>${t.turns.more}</button>`}
    </div>
  `;
}

function Filter({ app, agent }) {
  const agents = [...app.state.participants.value.values()].filter((each) => each.kind === "agent");
  const choose = (event) => app.router.go("turns", event.target.value ? [event.target.value] : []);
  return html`
    <select aria-label=${words.ofWhom} onChange=${choose}>
      <option value="" selected=${!agent}>${words.ofAll}</option>
      ${agents.map(({ id }) => html`<option value=${id} selected=${id === agent}>${id}</option>`)}
    </select>
  `;
}

/** With explicit roles: on narrow screens rows are blocks, which makes browsers drop table semantics. */
function Table({ app, turns }) {
  const { turn, started, outcome, took, steps, tokens, cost } = words.columns;
  return html`
    <table role="table">
      <thead role="rowgroup">
        <tr role="row">
          ${[turn, started, outcome].map((name) => html`<th role="columnheader">${name}</th>`)}
          ${[took, steps, tokens, cost].map(
            (name) => html`<th role="columnheader" class="number">${name}</th>`,
          )}
        </tr>
      </thead>
      <tbody role="rowgroup">
        ${turns.map((each) => html`<${Row} key=${each.id} app=${app} turn=${each} />`)}
      </tbody>
    </table>
  `;
}

function Row({ app, turn }) {
  const tokens = turn.tokens_in || turn.tokens_out;
  return html`
    <tr role="row">
      <td role="cell"><a href=${app.router.href("turn", [turn.id])} title=${turn.id}>${turn.id}</a></td>
      <td role="cell"><${Moment} at=${turn.started_at} /></td>
      <td role="cell">
        <${Outcome} outcome=${turn.outcome} waits=${turn.waits_for} />${" "}<span class="quiet reason">${visible(turn.reason)}</span>
      </td>
      <td role="cell" class="number">${duration(turn.duration_ms)}</td>
      <td role="cell" class="number">
        ${count(turn.steps)}<span class="unit" aria-hidden="true"> ${words.stepsUnit(turn.steps)}</span>
      </td>
      <td role="cell" class="number">
        ${tokens ? words.tokens(count(turn.tokens_in), count(turn.tokens_out)) : "–"}
      </td>
      <td role="cell" class="number">${dollars(turn.cost_usd) || "–"}</td>
    </tr>
  `;
}

/** In an agent's panel. */
export function LatestTurns({ app, id }) {
  const agent = app.state.participant(id);
  if (agent?.kind !== "agent" || !app.state.owner.value) return null;
  return html`<${Latest} app=${app} agent=${id} />`;
}

function Latest({ app, agent }) {
  const found = useTurns(app, agent, IN_PANEL).value;
  if (!found) return null;
  const { turns, more } = found;
  return html`
    <section class="latest-turns">
      <div class="section"><h3>${words.latest}</h3></div>
      ${!turns.length && html`<p class="quiet">${words.none}</p>`}
      <ul>
        ${turns.map(
          (turn) => html`<li key=${turn.id}>
            <a href=${app.router.href("turn", [turn.id])}><${Moment} at=${turn.started_at} /></a>
            <${Outcome} outcome=${turn.outcome} waits=${turn.waits_for} />
            <span class="quiet">${spent(turn)}</span>
          </li>`,
        )}
      </ul>
      ${more && html`<a href=${app.router.href("turns", [agent])}>${words.all}</a>`}
    </section>
  `;
}

const spent = ({ duration_ms, cost_usd }) =>
  [duration(duration_ms), dollars(cost_usd)].filter(Boolean).join(" · ");
