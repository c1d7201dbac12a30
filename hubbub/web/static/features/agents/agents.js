// `#/agents`: each agent with its state, model, activity, and today's turns, cost and failures. Its
// process can be started, stopped and restarted, and its output read.
import { count, dollars } from "../../core/numbers.js";
import { timeOf } from "../../core/time.js";
import { visible } from "../../core/markdown.js";
import { html, useState } from "../../core/ui.js";
import { AgentViews } from "../../parts/agent-views.js";
import { Avatar } from "../../parts/avatar.js";
import { Empty } from "../../parts/empty.js";
import { Icon } from "../../parts/icon.js";
import { Activity } from "../../parts/presence.js";
import { activitySigns, useWatched } from "../../parts/watched.js";
import { later } from "../../texts-later.js";
import { t } from "../../texts.js";

const words = later.agents;
const TURNS = 100; // the latest turns, used for models and failures
const FINE = new Set(["finished", "no_action", "cancelled", null, undefined]);
const MOODS = { running: "ok", restarting: "warn", stopped: "", given_up: "danger" };

export function Agents({ app }) {
  const [round, again] = useState(0);
  const { value, error } = useWatched(() => look(app), {
    key: `${round}`, goesOn: () => true, signs: () => activitySigns(app, null),
  });
  const all = [...app.state.participants.value.values()].filter(({ kind }) => kind === "agent");
  const agents = all.sort((a, b) => (a.id < b.id ? -1 : 1));
  return html`
    <header class="title"><h1 tabindex="-1" data-focus>${t.agents.title}</h1>
      <div class="tools"><a class="button primary" href=${app.router.href("agent", [])}><${Icon} name="plus" size=${16} />${t.agents.make}</a></div></header>
    <div class="page agents-page">
      <${AgentViews} app=${app} />
      ${error && html`<p class="note danger" role="alert">${error.message}</p>`}
      <ul>${agents.map(({ id }) => html`<${Agent} key=${id} app=${app} id=${id} about=${value?.found.get(id) ?? NOTHING}
        edit=${value?.editable.has(id)} again=${() => again((n) => n + 1)} />`)}</ul>
      ${!agents.length && html`<${Empty} icon="agent" title=${words.none} />`}
    </div>
  `;
}

const NOTHING = { failed: 0, sums: /** @type {Record<string, number>} */ ({}) };

/** {found: Map of agent to {process, model, failed, sums}, editable: Set of agents that can be edited on the page}. */
async function look(app) {
  const { processes } = await app.client.call("list_agent_processes");
  const { turns } = await app.client.call("list_turns", { limit: TURNS });
  const { rows } = await app.client.call("read_spending", { days: 1 });
  const found = new Map();
  const of = (agent) => found.get(agent) ?? found.set(agent, { ...NOTHING, sums: {} }).get(agent);
  for (const process of processes) of(process.agent).process = process;
  const today = new Date().toISOString().slice(0, 10);
  for (const { agent, model, outcome, started_at: at } of turns) {
    of(agent).model ??= model;
    if (at.startsWith(today) && !FINE.has(outcome)) of(agent).failed++;
  }
  for (const { agent, sums } of rows) {
    for (const [name, n] of Object.entries(sums)) of(agent).sums[name] = (of(agent).sums[name] ?? 0) + n;
  }
  const { agents } = await app.client.call("agent_choices");
  return { found, editable: new Set(agents) };
}

function Agent({ app, id, about: { process, model, failed, sums }, edit, again }) {
  const { present, down, card } = app.state.participant(id);
  const facts = [
    model, words.turns(sums.turns ?? 0), sums.usd ? dollars(sums.usd) : null,
    failed ? words.failed(count(failed)) : null, process?.since && words.since(timeOf(process.since)),
  ];
  return html`<li aria-label=${app.state.nameOf(id)}>
    <${Avatar} app=${app} id=${id} size=${2.25} presence=${true} />
    <div>
      <h2><button type="button" class="who" onClick=${() => app.open("participant", id)}>${app.state.nameOf(id)}</button>
        <${Activity} app=${app} id=${id} /></h2>
      <p class="quiet small">${card?.description}</p>
      <p class="small">${facts.filter(Boolean).join(" · ")}</p>
      ${down && html`<p class="problem small">${app.state.nameOf(id)} ${visible(down)}.</p>`}
    </div>
    <${State} process=${process} present=${present} />
    <${Buttons} app=${app} id=${id} process=${process} edit=${edit} again=${again} />
  </li>`;
}

function State({ process, present }) {
  if (!process) return html`<span class=${present ? "chip ok" : "chip"}>${present ? t.presence.here : t.presence.away}</span>`;
  return html`<span class=${`chip ${MOODS[process.state]}`}>${words.states[process.state]}</span>`;
}

function Buttons({ app, id, process, edit, again }) {
  const [busy, setBusy] = useState(false);
  const [log, setLog] = useState(null);
  const run = (operation) => async () => {
    setBusy(true);
    await app.tried(() => app.client.call(operation, { agent: id }), words.done[operation](app.state.nameOf(id)));
    setBusy(false);
    again();
  };
  const read = () =>
    log ? setLog(null) : app.tried(async () => setLog((await app.client.call("read_agent_log", { agent: id })).lines));
  const button = (title, onClick, rest = {}) => html`<button type="button" class="small" disabled=${busy}
    aria-label=${words.of(title, app.state.nameOf(id))} onClick=${onClick} ...${rest}>${title}</button>`;
  const runs = process && (process.state === "running" || process.state === "restarting");
  return html`<div class="buttons">
      ${edit && html`<a class="button small" aria-label=${words.of(words.edit, app.state.nameOf(id))}
        href=${app.router.href("agent", [id])}>${words.edit}</a>`}
      ${process && !runs && button(words.start, run("start_agent"))}
      ${runs && button(words.stop, run("stop_agent"))}
      ${runs && button(words.restart, run("restart_agent"))}
      ${button(words.pause, () => app.run("stop", { agent: id }))}
      ${process && button(words.log, read, { "aria-expanded": log !== null })}
      <a class="button small" href=${app.router.href("turns", [id])}>${t.turns.list}</a>
    </div>
    ${log && html`<pre class="agent-log" tabindex="0">${log.length ? visible(log.join("\n")) : words.nothing}</pre>`}`;
}
