// The turn inspector: what an agent saw, did and spent.
import { visible } from "../../core/markdown.js";
import { duration } from "../../core/time.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "../../core/ui.js";
import { lazy } from "../../parts/lazy.js";
import { Folded } from "../../parts/long-text.js";
import { MessageLink } from "../../parts/message-link.js";
import { Moment } from "../../parts/moment.js";
import { Outcome } from "../../parts/outcome.js";
import { t } from "../../texts.js";
import { factsOf } from "./facts.js";
import { stepNames, timeline } from "./record.js";
import { Notes, Step } from "./steps.js";
import { words } from "./texts.js";
import { change, trialOf } from "./trials.js";
import { Problem, useTurn, useTurns } from "./use-turn.js";

/** On the right. */
export function TurnPanel({ app, id }) {
  return html`<div class="turn"><${Inspector} app=${app} id=${id} wide=${false} /></div>`;
}

/** In the middle, `#/turn/<id>`; with `/try` or `/branch`, to try it again. */
export function TurnView({ app, args: [id = "", what] }) {
  return html`
    <header class="title"><h1>${t.turns.title(id)}</h1></header>
    <div class="page turn"><${Inspector} app=${app} id=${id} wide=${true} what=${what} /></div>
  `;
}

function Inspector({ app, id, wide, what = null }) {
  const { value: turn, error } = useTurn(app, id);
  if (error) return html`<${Problem} app=${app} error=${error} />`;
  if (!turn) return html`<p class="quiet" role="status">${words.loading}</p>`;
  return html`<${Record} app=${app} turn=${turn} wide=${wide} what=${what} />`;
}

function Record({ app, turn, wide, what }) {
  const { start } = turn;
  const list = useRef(null);
  const names = stepNames(turn.steps);
  const toStep = (n) => {
    const step = list.current?.querySelector(`[data-step="${n}"]`);
    step?.scrollIntoView({ block: "start" });
    step?.focus({ preventScroll: true });
  };
  return html`
    <${Verdict} turn=${turn} />
    <div class="turn-tools">
      ${!wide && html`<a href=${app.router.href("turn", [start.id])}>${words.moreRoom}</a>`}
      <${CompareWith} app=${app} turn=${turn} />
      <${TryAgain} app=${app} turn=${turn} now=${what === "try"} />
      <${Otherwise} app=${app} turn=${turn} now=${what === "branch"} />
    </div>
    <dl class="facts">
      ${factsOf(turn, app.state).map(
        ({ key, label, value }) => html`<dt key=${key}>${label}</dt><dd>${value}</dd>`,
      )}
    </dl>
    <${Messages} app=${app} title=${words.wokenBy} ids=${start.messages} />
    <${Messages} app=${app} title=${words.sent} ids=${turn.sent} none=${turn.end && words.sentNothing} />
    <h3>${words.time}</h3>
    <${Waterfall} turn=${turn} names=${names} onStep=${toStep} />
    ${turn.steps.length > 0 &&
    html`<h3>${words.steps}</h3>
      <ol class="steps" ref=${list}>
        ${turn.steps.map((step) => html`<${Step} key=${step.n} app=${app} step=${step}
          name=${names.get(step.n)} />`)}
      </ol>`}
    <${Seen} turn=${turn} />
  `;
}

/** The outcome and its reason, in one sentence. */
function Verdict({ turn: { end } }) {
  const outcome = end?.outcome ?? null;
  return html`
    <p class="verdict">
      <${Outcome} outcome=${outcome} />
      <span>${visible(end?.reason ?? "") || t.turns.meanings[outcome ?? "running"]}</span>
    </p>
    <${Notes} notes=${end?.notes} />
    ${end?.text && html`<${Folded} title=${words.unpublished} text=${end.text} />`}
  `;
}

function Messages({ app, title, ids, none = null }) {
  if (!ids.length && !none) return null;
  return html`
    <h3>${title}</h3>
    ${ids.length
      ? html`<ul class="messages-of-turn">
          ${ids.map((id) => html`<li key=${id}><${MessageLink} app=${app} id=${id} /></li>`)}
        </ul>`
      : html`<p class="quiet">${none}</p>`}
  `;
}

/** The model's input. */
function Seen({ turn }) {
  const { prompt, system_prompt, start: { components, tools } } = turn;
  if (!prompt && !system_prompt && !tools.length) return null;
  return html`
    <h3>${words.seen}</h3>
    ${prompt && html`<${Folded} title=${words.prompt} text=${prompt} />`}
    ${system_prompt && html`<${Folded} title=${words.systemPrompt} text=${system_prompt} />`}
    <${Names} title=${words.components} names=${components} />
    <${Names} title=${words.tools} names=${tools} />
  `;
}

function Names({ title, names }) {
  if (!names?.length) return null;
  return html`<p class="offered">
    <span class="quiet">${title}</span>${" "}${names.map((name) => html`<code>${name}</code>${" "}`)}
  </p>`;
}

// The timeline of a turn: a table with a row per model call and tool call, and a bar in each row.

/** `names`: see `stepNames`. `onStep(n)` is called when a step is selected. */
function Waterfall({ turn, names, onStep }) {
  const { rows, total } = timeline(turn, Date.now());
  const { what, when, took } = words.columns;
  if (!rows.length) return html`<p class="quiet">${words.noSteps}</p>`;
  return html`
    <table class="waterfall">
      <caption class="hidden-text">${words.timeline}</caption>
      <colgroup><col class="what" /><col /><col class="took" /></colgroup>
      <thead class="hidden-text">
        <tr><th>${what}</th><th>${when}</th><th>${took}</th></tr>
      </thead>
      <tbody>
        ${rows.map((row, at) => html`<${Row} key=${at} row=${row} total=${total} names=${names} onStep=${onStep} />`)}
      </tbody>
    </table>
  `;
}

function Row({ row, total, names, onStep }) {
  const { kind, name, step, start, end, error } = row;
  const label = kind === "tool" || kind === "model" ? name : words.kinds[kind];
  return html`
    <tr data-kind=${kind} data-error=${error ? "" : null}>
      <th scope="row">
        ${step === null
          ? label
          : html`<button type="button" class="plain" title=${words.toStep(names.get(step))}
              onClick=${() => onStep(step)}>${label}</button>`}
      </th>
      <td class="track">
        ${start !== null && html`<${Bar} start=${start} end=${end ?? total} total=${total} />`}
      </td>
      <td class="number">
        ${kind === "rest" ? t.outcomes.running : end === null ? "" : duration(end - (start ?? 0))}
        ${error && html`${" "}<span class="problem">${error}</span>`}
      </td>
    </tr>
  `;
}

function Bar({ start, end, total }) {
  const place = {
    insetInlineStart: `${(100 * start) / total}%`,
    width: `max(3px, ${(100 * (end - start)) / total}%)`,
  };
  return html`
    <span class="hidden-text">${words.at(duration(start))}</span>
    <span class="bar-of-time" style=${place} aria-hidden="true"></span>
  `;
}

// Actions on a turn. "Compare with…" lists the agent's other turns, newest first; "Try it again…" asks
// its model with another prompt; "What if…" continues in a copy of the network.

const Trial = lazy(() => import("./trial.js").then((module) => module.Trial));
const Branch = lazy(() => import("./branch.js").then((module) => module.Branch));
const OFFERED = 30;

function CompareWith({ app, turn }) {
  const [open, setOpen] = useState(false);
  return html`
    <details class="choose" onToggle=${(event) => setOpen(event.currentTarget.open)}>
      <summary>${words.compareWith}</summary>
      ${open && html`<${Others} app=${app} turn=${turn} />`}
    </details>
  `;
}

/** For owners, on turns with model calls. `now`: it was opened by the address. */
function TryAgain({ app, turn, now = false }) {
  const trial = trialOf(app, turn);
  const { open } = trial.value;
  useEffect(() => now && change(trial, { open: true }), [turn.start.id, now]);
  if (!app.state.owner.value || turn.start.model == null || turn.prompt == null) return null;
  return html`
    <details class="choose" open=${open}
      onToggle=${(event) => change(trial, { open: event.currentTarget.open })}>
      <summary>${t.turns.tryAgain}</summary>
      ${open && html`<${Trial} app=${app} turn=${turn} />`}
    </details>
  `;
}

function Otherwise({ app, turn, now }) {
  const [open, setOpen] = useState(now);
  useLayoutEffect(() => now && setOpen(true), [turn.start.id, now]);
  if (!app.state.owner.value || turn.start.model == null) return null;
  return html`
    <details class="choose" open=${open} onToggle=${(event) => setOpen(event.currentTarget.open)}>
      <summary>${t.turns.branch}</summary>
      ${open && html`<${Branch} key=${turn.start.id} app=${app} turn=${turn} />`}
    </details>
  `;
}

function Others({ app, turn }) {
  const id = turn.start.id;
  const turns = useTurns(app, turn.agent, OFFERED).value?.turns.filter((each) => each.id !== id);
  if (!turns) return null;
  if (!turns.length) return html`<p class="quiet">${words.noOther(turn.agent)}</p>`;
  return html`
    <ul>
      ${turns.map(
        (other) => html`<li key=${other.id}>
          <a href=${app.router.href("turns", [id, other.id])}>${other.id}</a>
          <${Moment} at=${other.started_at} />
          <${Outcome} outcome=${other.outcome} />
        </li>`,
      )}
    </ul>
  `;
}
