// "Try it again…": asks a model a recorded turn's question again, with another system prompt or model,
// and shows both answers side by side. Nothing is sent, run or stored.
import { html } from "../../core/ui.js";
import { DiffView } from "../../parts/diff-view.js";
import { useWatched } from "../../parts/watched.js";
import { Step } from "./steps.js";
import { change, trialOf, tryAgain } from "./trials.js";
import { words } from "./texts.js";

export function Trial({ app, turn }) {
  const trial = trialOf(app, turn);
  const { system, model, outcome } = trial.value;
  const submit = (event) => {
    event.preventDefault();
    tryAgain(app, turn, trial);
  };
  return html`
    <form class="trial" onSubmit=${submit}>
      <label class="field">${words.systemPrompt}
        <textarea name="system" rows="10" spellcheck=${false} dir="auto" value=${system}
          onInput=${(event) => change(trial, { system: event.target.value })} />
      </label>
      <label class="field">${words.facts.model}
        <${ModelChoice} app=${app} turn=${turn} model=${model}
          choose=${(name) => change(trial, { model: name })} />
        <small>${words.trialMeaning}</small>
      </label>
      <div class="actions">
        <button type="submit" class="primary" disabled=${outcome.state === "asking"}>
          ${words.tryNow}</button>
        <span class="quiet" role="status">${outcome.state === "asking" && words.asking}</span>
      </div>
      ${outcome.state === "failed" && html`<p class="problem" role="alert">${outcome.error.message}</p>`}
    </form>
    ${outcome.state === "answered" &&
    html`<${Both} app=${app} turn=${turn} tried=${outcome.tried} system=${outcome.args.system_prompt} />`}
  `;
}

export function ModelChoice({ app, turn, model, choose }) {
  const { models = [] } = useWatched(() => app.client.call("list_models"), { key: "" }).value ?? {};
  return html`<select name="model" onChange=${(event) => choose(event.target.value)}>
    <option value="" selected=${!model}>${words.itsOwn(turn.agent)}</option>
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
    { title: words.recordedBy(turn.start.model), step: first },
    { title: words.triedBy(tried.model), step: tried.step },
  ];
  return html`
    <div class="side-by-side">
      ${sides.map(
        ({ title, step }) => html`<section aria-label=${title}>
          <h4>${title}</h4>
          ${step
            ? html`<ol class="steps"><${Step} app=${app} step=${step} /></ol>`
            : html`<p class="quiet">${words.noSteps}</p>`}
        </section>`,
      )}
    </div>
    ${system !== undefined &&
    html`<${DiffView} title=${words.systemPrompt} a=${turn.system_prompt ?? ""} b=${system} />`}
  `;
}
