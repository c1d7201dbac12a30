// Theme and density.
import { html } from "../../core/ui.js";
import { Icon } from "../../parts/icon.js";
import { t } from "../../texts.js";

const ICONS = { system: "screen", light: "sun", dark: "moon" };

export function Looks({ looks }) {
  return html`
    <${Choice} name="theme" label=${t.appearance.theme} texts=${t.appearance.themes}
      value=${looks.theme} />
    <${Choice} name="density" label=${t.appearance.density} texts=${t.appearance.densities}
      value=${looks.density} />
  `;
}

function Choice({ name, label, texts, value }) {
  return html`<div class="line">
    <span>${label}</span>
    <div class="choice" role="radiogroup" aria-label=${label}>
      ${Object.entries(texts).map(([key, text]) => html`<label key=${key}>
        <input type="radio" name=${name} checked=${value.value === key}
          onChange=${() => (value.value = key)} />
        ${ICONS[key] && html`<${Icon} name=${ICONS[key]} size=${15} />`}${text}
      </label>`)}
    </div>
  </div>`;
}
