// "Try it again…": a recorded turn's question put to a model once more, with another system prompt
// or to another model, and both answers side by side. Nothing of it is sent, run or kept.
import { html, useEffect, useRef, useState } from "../../core/ui.js";
import { t } from "../../texts.js";
import { Difference } from "./difference.js";
import { Step } from "./steps.js";

export function Trial({ app, turn }) {
  const recorded = turn.start.system_prompt ?? "";
  const [system, setSystem] = useState(recorded);
  const [model, setModel] = useState("");
  const { outcome, run } = useTrial(app, turn.start.id);
  const submit = (event) => {
    event.preventDefault();
    run({ ...(system !== recorded && { system_prompt: system }), ...(model && { model }) });
  };
  return html`
    <form class="trial" onSubmit=${submit}>
      <label class="field">${t.turns.systemPrompt}
        <textarea name="system" rows="10" spellcheck=${false} dir="auto" value=${system}
          onInput=${(event) => setSystem(event.target.value)} />
      </label>
      <label class="field">${t.turns.facts.model}
        <${ModelChoice} app=${app} turn=${turn} model=${model} choose=${setModel} />
        <small>${t.turns.trialMeaning}</small>
      </label>
      <div class="actions">
        <button type="submit" class="primary" disabled=${outcome.state === "asking"}>
          ${t.turns.tryNow}</button>
        <span class="quiet" role="status">${outcome.state === "asking" && t.turns.asking}</span>
      </div>
      ${outcome.state === "failed" && html`<p class="problem" role="alert">${outcome.error.message}</p>`}
    </form>
    ${outcome.state === "answered" &&
    html`<${Both} app=${app} turn=${turn} tried=${outcome.tried} system=${outcome.args.system_prompt} />`}
  `;
}

/** What came of the last try: {state: "none" | "asking" | "failed" | "answered", ...}. */
function useTrial(app, turn) {
  const [outcome, setOutcome] = useState({ state: "none" });
  const here = useRef(true);
  useEffect(() => () => void (here.current = false), []);
  const run = (args) => {
    const show = (next) => here.current && setOutcome(next);
    show({ state: "asking" });
    app.client.call("try_turn", { turn, ...args }).then(
      (tried) => show({ state: "answered", tried, args }),
      (error) => show({ state: "failed", error }),
    );
  };
  return { outcome, run };
}

function ModelChoice({ app, turn, model, choose }) {
  const [models, setModels] = useState([]);
  useEffect(() => {
    app.client.call("list_models").then(
      (found) => setModels(found.models),
      (error) => app.say(error.message),
    );
  }, []);
  return html`<select name="model" onChange=${(event) => choose(event.target.value)}>
    <option value="" selected=${!model}>${t.turns.itsOwn(turn.agent)}</option>
    ${models.map(
      (each) => html`<option value=${each.name} selected=${each.name === model}>
        ${each.name === each.model ? each.name : `${each.name} (${each.model})`}
      </option>`,
    )}
  </select>`;
}

function Both({ app, turn, tried, system }) {
  const [first] = turn.steps;
  const sides = [
    { title: t.turns.recordedBy(turn.start.model), step: first },
    { title: t.turns.triedBy(tried.model), step: tried.step },
  ];
  return html`
    <div class="side-by-side">
      ${sides.map(
        ({ title, step }) => html`<section aria-label=${title}>
          <h4>${title}</h4>
          ${step
            ? html`<ol class="steps"><${Step} app=${app} step=${step} /></ol>`
            : html`<p class="quiet">${t.turns.noSteps}</p>`}
        </section>`,
      )}
    </div>
    ${system !== undefined &&
    html`<${Difference} title=${t.turns.systemPrompt} a=${turn.start.system_prompt ?? ""} b=${system} />`}
  `;
}
