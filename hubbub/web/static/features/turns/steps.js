// The steps of a turn: the model's texts, its tool calls and their results.
import { visible } from "../../core/markdown.js";
import { count, dollars } from "../../core/numbers.js";
import { duration } from "../../core/time.js";
import { html, useState } from "../../core/ui.js";
import { Folded, TitledText } from "../../parts/long-text.js";
import { MessageLink } from "../../parts/message-link.js";
import { filling, pretty } from "./record.js";
import { words } from "./texts.js";

/** `name`: its label from `stepNames`. */
export function Step({ app, step, name = { n: step.n, helpers: [] } }) {
  return html`
    <li class="step" data-step=${step.n} tabindex="-1">
      <h4>
        ${words.step(name)}${" "}
        <span class="quiet">${spent(step)}</span>
      </h4>
      ${step.window && html`<${Window} window=${step.window} />`}
      ${step.steered?.map((each) => html`<${Steered} key=${each.message} app=${app} steering=${each} />`)}
      <${Notes} notes=${[...remarks(step), ...(step.notes ?? [])]} />
      ${step.reasoning && html`<${TitledText} title=${words.reasoning} text=${step.reasoning} />`}
      ${step.text && html`<${TitledText} title=${words.text} text=${step.text} />`}
      ${step.calls.length > 1 && words.waits[step.wait] &&
      html`<p class="quiet">${words.waits[step.wait]}</p>`}
      ${step.calls.map((call) => html`<${Call} key=${call.id} call=${call} />`)}
      <${Forgotten} step=${step} />
      ${!step.text && !step.calls.length && html`<p class="quiet">${words.emptyStep}</p>`}
    </li>
  `;
}

function Call({ call }) {
  return html`
    <section class="call" data-error=${call.error ? "" : null} aria-label=${words.call(call.name)}>
      <h5>
        <code>${call.name}</code>${" "}
        <span class="quiet">${ran(call)}</span>
        ${call.error && html`<span class="problem">${words.failed(call.error)}</span>`}
      </h5>
      ${call.changed
        ? html`<${Changed} call=${call} />`
        : html`<${TitledText} title=${words.arguments} text=${pretty(call.arguments)} />`}
      ${call.result != null
        ? html`<${TitledText} title=${words.result} text=${readable(call.result)} />`
        : html`<p class="quiet">${words.notRun}</p>`}
    </section>
  `;
}

/** A call whose arguments were changed: the original ones, the new ones, and by whom. */
function Changed({ call: { arguments: asked, changed } }) {
  return html`
    <p class="note">${visible(words.changedBy(changed.by, changed.names))}</p>
    <${TitledText} title=${words.asAsked} text=${pretty(asked)} />
    <${TitledText} title=${words.ranWith} text=${pretty(changed.arguments)} />
  `;
}

/** A person's message during the turn, as shown to the model. */
function Steered({ app, steering: { message, text } }) {
  return html`
    <section class="steered" aria-label=${words.steered}>
      <h5>${words.steered}</h5>
      <${MessageLink} app=${app} id=${message} />
      <${Folded} title=${words.asShown} text=${text} />
    </section>
  `;
}

/** Who answered, what the runtime did, and untrusted content, one sentence each. */
function remarks({ role, plan_step, model, made, untrusted, calls_cut }) {
  return [
    role && words.role(role, plan_step),
    model && words.ofModel(model),
    made && words.made[made],
    untrusted?.length > 0 && words.untrusted(untrusted),
    calls_cut && words.callsCut,
  ].filter(Boolean);
}

/** Other actions of the runtime: a fallback, a repeated request. */
export function Notes({ notes }) {
  if (!notes?.length) return null;
  return html`<ul class="notes-of-turn" aria-label=${words.notes}>
    ${notes.map((note) => html`<li dir="auto">${visible(note)}</li>`)}
  </ul>`;
}

/** Steps that the model itself removed from its context, or summarised. */
function Forgotten({ step: { discards, compresses } }) {
  return html`
    ${discards?.length > 0 && html`<p class="quiet">${words.discards(discards)}</p>`}
    ${compresses?.map(
      ({ n, text }) => html`<${TitledText} key=${n} title=${words.compresses(n)} text=${text} />`,
    )}
  `;
}

function ran({ duration_ms, attempts }) {
  const took = duration_ms != null ? duration(duration_ms) : "";
  return [took, attempts > 1 && words.attemptsOfCall(attempts)].filter(Boolean).join(" · ");
}

/** A result; JSON is shown on several lines. */
function readable(text) {
  if (text.length > 100_000 || !/^[[{]/.test(text)) return text;
  try {
    return pretty(JSON.parse(text));
  } catch {
    return text; // it only starts like JSON
  }
}

function spent({ duration_ms, tokens_in, tokens_out, cost_usd }) {
  const tokens = tokens_in || tokens_out ? words.tokens(count(tokens_in), count(tokens_out)) : "";
  return [duration(duration_ms), tokens, dollars(cost_usd)].filter(Boolean).join(" · ");
}

// The composition of the model's context window: a bar of layers, with a table when opened.

function Window({ window }) {
  const [open, setOpen] = useState(false);
  const filled = filling(window);
  const { used, cut, whole, layers } = filled;
  return html`
    <details class="window" onToggle=${(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <span class="window-bar" aria-hidden="true">
          ${layers.map(
            ({ name, tokens }) => html`<${Part} key=${name} name=${name} of=${tokens / whole} />`,
          )}
          ${window.reserve > 0 && html`<${Part} name="reserve" of=${window.reserve / whole} />`}
        </span>
        <span class="quiet">${words.window(count(used), window.size && count(window.size), window.exact)}</span>
        ${cut > 0 && html`${" "}<span class="cut-away">${words.leftOut(count(cut))}</span>`}
      </summary>
      ${open && html`<${Layers} filled=${filled} reserve=${window.reserve} />`}
    </details>
  `;
}

function Layers({ filled: { cut, layers }, reserve }) {
  const columns = words.layerColumns;
  return html`
    <table>
      <caption class="hidden-text">${words.windowTable}</caption>
      <thead>
        <tr><th>${columns.layer}</th><th class="number">${columns.tokens}</th>
          ${cut > 0 && html`<th class="number">${columns.cut}</th>`}</tr>
      </thead>
      <tbody>
        ${layers.map(
          (layer) => html`<tr key=${layer.name}>
            <th scope="row"><i class="swatch" data-layer=${layer.name} />
              ${words.layers[layer.name] ?? layer.name}</th>
            <td class="number">${count(layer.tokens)}</td>
            ${cut > 0 && html`<td class="number">${layer.cut ? count(layer.cut) : ""}</td>`}
          </tr>`,
        )}
        ${reserve > 0 &&
        html`<tr>
          <th scope="row"><i class="swatch" data-layer="reserve" /> ${words.reserve}</th>
          <td class="number">${count(reserve)}</td>
          ${cut > 0 && html`<td />`}
        </tr>`}
      </tbody>
    </table>
  `;
}

function Part({ name, of }) {
  return html`<i data-layer=${name} style=${{ flexBasis: `${100 * of}%` }} />`;
}
