// The panel of a task with all its details.
import { visible } from "../../core/markdown.js";
import { html, useState } from "../../core/ui.js";
import { Loading } from "../../parts/empty.js";
import { Moment } from "../../parts/moment.js";
import { Prose } from "../../parts/prose.js";
import { useWatched } from "../../parts/watched.js";
import { Marks } from "./card.js";
import { Actions } from "./actions.js";
import { words } from "./texts.js";

const PAGE = 20;
const MOST = 200;

export function TaskPanel({ app, id, news }) {
  const [most, setMost] = useState(PAGE);
  const read = () => app.client.call("read_task", { task: id, limit: most });
  const { value, error } = useWatched(read, {
    key: `${id} ${most}`, signs: () => news.signs(id),
  });
  if (!value) return html`<${Loading} found=${{ value, error }} />`;
  const { task, description, result, history, more } = value;
  return html`<section class="task-panel">
    <h3 dir="auto">${visible(task.title)}</h3>
    <div class="task-facts"><${Marks} task=${task} />
      ${task.labels.map((label) => html`<span key=${label} class="chip">${visible(label)}</span>`)}</div>
    <div class="task-foot"><${Actions} app=${app} task=${task} /></div>
    <${Facts} app=${app} task=${task} />
    ${description && html`<div class="section"><h3>${words.description}</h3></div>
      <${Prose} app=${app} text=${description} />`}
    ${result && html`<div class="section"><h3>${words.result}</h3></div><${Prose} app=${app} text=${result} />`}
    <div class="section"><h3>${words.history}</h3></div>
    <ol class="task-history" aria-label=${words.history}>
      ${history.map(({ version, at, by, what, note }) => html`<li key=${version}>
        <b>${words.changed[what] ?? what}</b> ${words.by(by)}${" "}<span class="quiet"><${Moment} at=${at} /></span>
        ${note && html`<q dir="auto">${visible(note)}</q>`}</li>`)}
    </ol>
    ${more && most < MOST &&
    html`<button type="button" class="plain small" onClick=${() => setMost(MOST)}>${words.older}</button>`}
  </section>`;
}

function Facts({ app, task }) {
  const { id, state, owner, thread_id: thread, created_by: by, created_at: at, depends_on: needs, request } = task;
  const open = (other) => html`<button type="button" class="plain small" key=${other}
    onClick=${() => app.open("task", other)}>${other}</button>`;
  return html`<dl class="facts">
    <dt>${words.facts.id}</dt><dd>${id}, <a href=${app.router.href("tasks", [thread])}>
      ${app.state.titleOf(thread)}</a></dd>
    <dt>${words.facts.state}</dt><dd>${words.states[state]}</dd>
    <dt>${words.facts.owner}</dt><dd>${owner ?? words.nobody}</dd>
    <dt>${words.facts.created}</dt><dd>${words.by(by)}, <${Moment} at=${at} /></dd>
    ${needs.length > 0 && html`<dt>${words.dependsOn}</dt><dd>${needs.map(open)}</dd>`}
    ${request && html`<dt>${words.toRequest}</dt><dd>
      <a href=${app.router.href("message", [request])}>${request}</a><br />
      <span class="quiet">${words.request}</span></dd>`}
  </dl>`;
}
