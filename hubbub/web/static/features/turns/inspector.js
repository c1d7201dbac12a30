// A turn: what an agent saw, did and spent.
import { visible } from "../../core/markdown.js";
import { html, useRef } from "../../core/ui.js";
import { MessageLink } from "../../parts/message-link.js";
import { Folded } from "../../parts/long-text.js";
import { Outcome } from "../../parts/outcome.js";
import { t } from "../../texts.js";
import { CompareWith, TryAgain } from "./choose.js";
import { factsOf } from "./facts.js";
import { stepNames } from "./record.js";
import { Problem } from "./problem.js";
import { Notes, Step } from "./steps.js";
import { Waterfall } from "./waterfall.js";
import { useTurn } from "./watching.js";
import { words } from "./texts.js";

/** On the right. */
export function TurnPanel({ app, id }) {
  return html`<div class="turn"><${Inspector} app=${app} id=${id} wide=${false} /></div>`;
}

/** In the middle, `#/turn/<id>`; with `/try`, to try it again. */
export function TurnView({ app, args: [id = "", what] }) {
  return html`
    <header class="title"><h1>${t.turns.title(id)}</h1></header>
    <div class="page turn"><${Inspector} app=${app} id=${id} wide=${true} trying=${what === "try"} /></div>
  `;
}

function Inspector({ app, id, wide, trying = false }) {
  const { value: turn, error } = useTurn(app, id);
  if (error) return html`<${Problem} app=${app} error=${error} />`;
  if (!turn) return html`<p class="quiet" role="status">${words.loading}</p>`;
  return html`<${Record} app=${app} turn=${turn} wide=${wide} trying=${trying} />`;
}

function Record({ app, turn, wide, trying }) {
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
      <${TryAgain} app=${app} turn=${turn} now=${trying} />
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

/** How it ended, and why, in one sentence. */
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

/** What the model was given. */
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
