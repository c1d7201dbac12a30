// How a question filled the model's context window: a bar of layers, and opened a table of them.
import { count } from "../../core/numbers.js";
import { html, useState } from "../../core/ui.js";
import { filling } from "./record.js";
import { words } from "./texts.js";

export function Window({ window }) {
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
