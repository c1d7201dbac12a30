// Whether the desktop is told: a button that asks for the permission, or a switch.
import { html } from "../../core/ui.js";
import { Icon } from "../../parts/icon.js";
import { t } from "../../texts.js";

export function Permission({ notifier }) {
  const permission = notifier.permission.value;
  if (permission === "unsupported") return html`<p class="quiet small">${t.notifications.unsupported}</p>`;
  if (permission === "denied") return html`<p class="quiet small">${t.notifications.denied}</p>`;
  if (permission === "default") {
    return html`<div class="line"><span>${t.notifications.what}</span>
      <button type="button" onClick=${() => notifier.ask()}>
        <${Icon} name="bell" size=${16} />${t.notifications.allow}
      </button>
    </div>`;
  }
  return html`<label class="option">
    <input type="checkbox" checked=${notifier.wanted.value}
      onChange=${(event) => notifier.want(event.target.checked)} />
    ${t.notifications.what}
  </label>`;
}
