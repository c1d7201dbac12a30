// What a turn did, step by step: what the model wrote, and the tools it called with what came back.
import { duration } from "../../core/time.js";
import { count, dollars } from "../../core/numbers.js";
import { html } from "../../core/ui.js";
import { TitledText } from "../../parts/long-text.js";
import { t } from "../../texts.js";
import { pretty } from "./record.js";

export function Step({ step }) {
  return html`
    <li class="step" data-step=${step.n} tabindex="-1">
      <h4>
        ${t.turns.step(step.n)}${" "}
        <span class="quiet">${spent(step)}</span>
      </h4>
      ${step.text && html`<${TitledText} title=${t.turns.text} text=${step.text} />`}
      ${step.calls.map((call) => html`<${Call} key=${call.id} call=${call} />`)}
      ${!step.text && !step.calls.length && html`<p class="quiet">${t.turns.emptyStep}</p>`}
    </li>
  `;
}

function Call({ call }) {
  return html`
    <section class="call" data-error=${call.error ? "" : null} aria-label=${t.turns.call(call.name)}>
      <h5>
        <code>${call.name}</code>${" "}
        <span class="quiet">${call.duration_ms != null ? duration(call.duration_ms) : ""}</span>
        ${call.error && html`<span class="problem">${t.turns.failed(call.error)}</span>`}
      </h5>
      <${TitledText} title=${t.turns.arguments} text=${pretty(call.arguments)} />
      ${call.result != null
        ? html`<${TitledText} title=${t.turns.result} text=${readable(call.result)} />`
        : html`<p class="quiet">${t.turns.notRun}</p>`}
    </section>
  `;
}

/** Results are text, and mostly JSON: then they are easier to read over several lines. */
function readable(text) {
  if (text.length > 100_000 || !/^[[{]/.test(text)) return text;
  try {
    return pretty(JSON.parse(text));
  } catch {
    return text; // it only begins like JSON
  }
}

function spent({ duration_ms, tokens_in, tokens_out, cost_usd }) {
  const tokens = tokens_in || tokens_out ? t.turns.tokens(count(tokens_in), count(tokens_out)) : "";
  return [duration(duration_ms), tokens, dollars(cost_usd)].filter(Boolean).join(" · ");
}
