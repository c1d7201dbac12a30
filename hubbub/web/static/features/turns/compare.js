// Two turns side by side: `#/turns/<a>/<b>`.
import { html } from "../../core/ui.js";
import { visible } from "../../core/markdown.js";
import { Outcome } from "../../parts/outcome.js";
import { DiffView } from "../../parts/diff-view.js";
import { factsOf } from "./facts.js";
import { stepNames } from "./record.js";
import { Step } from "./steps.js";
import { Problem, useTurn } from "./use-turn.js";
import { words } from "./texts.js";

export function Comparison({ app, ids: [left, right] }) {
  const a = useTurn(app, left);
  const b = useTurn(app, right);
  return html`
    <header class="title"><h1>${words.comparison}</h1></header>
    <div class="page comparison">
      ${[a, b].map(({ error }) => error && html`<${Problem} app=${app} error=${error} />`)}
      ${a.value && b.value && html`<${Both} app=${app} a=${a.value} b=${b.value} />`}
    </div>
  `;
}

function Both({ app, a, b }) {
  return html`
    <${Facts} app=${app} a=${a} b=${b} />
    <${DiffView} title=${words.prompt} a=${a.prompt ?? ""} b=${b.prompt ?? ""} />
    <${DiffView} title=${words.systemPrompt}
      a=${a.system_prompt ?? ""} b=${b.system_prompt ?? ""} />
    <h2>${words.steps}</h2>
    <${Steps} app=${app} a=${a} b=${b} />
  `;
}

function Facts({ app, a, b }) {
  const left = new Map(factsOf(a, app.state).map((fact) => [fact.key, fact.value]));
  const right = new Map(factsOf(b, app.state).map((fact) => [fact.key, fact.value]));
  const keys = Object.keys(words.facts).filter((key) => left.has(key) || right.has(key));
  return html`
    <table class="facts-compared">
      <thead>
        <tr><td></td><${Head} app=${app} turn=${a} /><${Head} app=${app} turn=${b} /></tr>
      </thead>
      <tbody>
        <${Pair} label=${words.columns.outcome} differs=${a.end?.outcome !== b.end?.outcome}
          a=${html`<${Ending} end=${a.end} />`} b=${html`<${Ending} end=${b.end} />`} />
        ${keys.map((key) => {
          const [one, other] = [left.get(key) ?? "", right.get(key) ?? ""];
          const differs = one !== other && key !== "started"; // start times always differ
          const label = words.facts[key];
          return html`<${Pair} key=${key} label=${label} a=${one} b=${other} differs=${differs} />`;
        })}
      </tbody>
    </table>
  `;
}

function Head({ app, turn: { start } }) {
  return html`<th scope="col"><a href=${app.router.href("turn", [start.id])}>${start.id}</a></th>`;
}

function Ending({ end }) {
  return html`<${Outcome} outcome=${end?.outcome ?? null} /> ${visible(end?.reason ?? "")}`;
}

function Pair({ label, a, b, differs }) {
  return html`
    <tr data-differs=${differs ? "" : null}>
      <th scope="row">
        ${label}${differs && html`<span class="differs" role="img" aria-label=${words.differs}>≠</span>`}
      </th>
      <td>${a}</td><td>${b}</td>
    </tr>
  `;
}

function Steps({ app, a, b }) {
  const most = Math.max(a.steps.length, b.steps.length);
  if (!most) return html`<p class="quiet">${words.noSteps}</p>`;
  return html`
    <div class="side-by-side">
      ${[a, b].map((turn) => {
        const names = stepNames(turn.steps);
        return html`<ol class="steps" aria-label=${turn.start.id}>
          ${turn.steps.map((step) => html`<${Step} key=${step.n} app=${app} step=${step}
            name=${names.get(step.n)} />`)}
        </ol>`;
      })}
    </div>
  `;
}
