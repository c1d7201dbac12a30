// "What if…": a copy of the network continues from the message that woke a turn, with another
// instruction or model; the new result is shown beside the original one.
import { html, useState } from "../../core/ui.js";
import { wokenBy } from "../../core/messages.js";
import { usePending } from "../../parts/pending.js";
import { ModelChoice } from "./trial.js";
import { words } from "./texts.js";

export function Branch({ app, turn }) {
  const [instruction, setInstruction] = useState("");
  const [model, setModel] = useState("");
  const [results, setResults] = useState({});
  const [branched, setBranched] = useState(null);
  const { busy, problem, run } = usePending();
  const { agent } = turn;
  const submit = (event) => {
    event.preventDefault();
    run(async () => setBranched(await app.client.call("branch", {
      message: wokenBy(turn.start.id),
      changes: instruction.trim() || model
        ? [{ agent, ...(instruction.trim() && { instruction }), ...(model && { model }) }] : [],
      results: Object.entries(results).map(([tool, text]) => ({ tool, text })),
    })));
  };
  const lacking = branched?.lacking;
  return html`
    <form class="trial" onSubmit=${submit}>
      <p class="quiet">${words.branchMeaning}</p>
      <label class="field">${words.instruction}
        <textarea name="instruction" rows="4" dir="auto" maxlength="16384" value=${instruction}
          placeholder=${words.itsInstruction} onInput=${(event) => setInstruction(event.target.value)} />
      </label>
      <label class="field">${words.facts.model}
        <${ModelChoice} app=${app} turn=${turn} model=${model} choose=${setModel} />
      </label>
      ${lacking && html`<label class="field">${words.lacking(lacking.tool, JSON.stringify(lacking.arguments))}
        <textarea name="result" rows="2" dir="auto" maxlength="16384" value=${results[lacking.tool] ?? ""}
          onInput=${(event) => setResults({ ...results, [lacking.tool]: event.target.value })} />
      </label>`}
      <div class="actions">
        <button type="submit" class="primary" disabled=${busy}>${words.goOn}</button>
        <span class="quiet" role="status">${busy && words.goesOn}</span>
      </div>
      ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    </form>
    ${branched && html`<div class="side-by-side">
      <${Side} title=${words.then} side=${branched.then} />
      <${Side} title=${words.inBranch} side=${branched.now} />
    </div>`}
  `;
}

function Side({ title, side }) {
  return html`<section aria-label=${title}>
    <h4>${title}</h4>
    <dl class="facts">
      ${words.courseFacts(side).map(([label, value]) => html`<dt key=${label}>${label}</dt><dd>${value}</dd>`)}
    </dl>
    ${side.said.length === 0 && html`<p class="quiet">${words.nothingSaid}</p>`}
    <ol class="said">${side.said.map((each, n) => html`<li key=${n} dir="auto">
      <b>${each.sender}</b> ${each.text}</li>`)}</ol>
  </section>`;
}
