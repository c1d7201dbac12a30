// `#/models`: the network's models, their prices, and whether they respond.
import { count, dollars } from "../../core/numbers.js";
import { html, useState } from "../../core/ui.js";
import { AgentViews } from "../../parts/agent-views.js";
import { Empty } from "../../parts/empty.js";
import { useWatched } from "../../parts/watched.js";
import { words } from "./texts.js";

export function Models({ app }) {
  const { value, error } = useWatched(() => app.client.call("list_models"), { key: "" });
  const models = value?.models;
  const [answers, setAnswers] = useState({}); // by name: {state: "asking" | "answered" | "failed", ...}
  const put = (name, answer) => setAnswers((before) => ({ ...before, [name]: answer }));
  const test = async ({ name }) => {
    put(name, { state: "asking" });
    const messages = [{ role: "user", text: words.question }];
    await app.client.call("ask_model", { model: name, messages }).then(
      (answer) => put(name, { state: "answered", ...answer }),
      (error) => put(name, { state: "failed", text: error.message }),
    );
  };
  const testAll = async () => {
    for (const model of models) await test(model);
  };
  return html`
    <header class="title"><h1 tabindex="-1" data-focus>${words.models}</h1>
      <div class="tools">${models?.length > 1 && html`<button type="button" onClick=${testAll}>${words.testAll}</button>`}</div></header>
    <div class="page agents-page">
      <${AgentViews} app=${app} />
      ${error && html`<p class="note danger" role="alert">${error.message}</p>`}
      ${models && !models.length && html`<${Empty} icon="agent" title=${words.none} text=${words.noneHint}>
        <p><code>hubbub network doctor</code></p><//>`}
      <ul>${models?.map((model) => html`<${Model} key=${model.name} model=${model} answer=${answers[model.name]}
        test=${() => test(model)} />`)}</ul>
    </div>`;
}

function Model({ model: { name, model, endpoint, usd_in, usd_out, context_window: window }, answer, test }) {
  const priced = usd_in !== undefined;
  return html`<li class="model" aria-label=${name}>
    <div>
      <h2>${name}</h2>
      <p class="small">${[model, endpoint, window && words.window(count(window))].filter(Boolean).join(" · ")}</p>
      <p class="quiet small">${priced ? words.price(usd_in, usd_out) : words.noPrice}</p>
    </div>
    <button type="button" class="small" aria-label=${`${words.test} ${name}`} disabled=${answer?.state === "asking"}
      onClick=${test}>${words.test}</button>
    <p class="answer" role="status">
      ${answer?.state === "asking" && html`<span class="quiet">${words.testing}</span>`}
      ${answer?.state === "answered" && html`<span class="chip ok">${words.took(answer.seconds)}${answer.usd ? ` · ${dollars(answer.usd)}` : ""}</span>
        <q dir="auto">${answer.text}</q>`}
      ${answer?.state === "failed" && html`<span class="problem">${answer.text}</span>`}</p>
  </li>`;
}
