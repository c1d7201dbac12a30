// The settings that features register.
import { html } from "../../core/ui.js";
import { Dialog } from "../../parts/dialog.js";
import { t } from "../../texts.js";

export function Settings({ app, close }) {
  return html`<${Dialog} title=${t.appearance.settings} close=${close} className="settings">
    <div class="body">
      ${app.add.settings.items.value.map((part) => html`<section key=${part.title}>
        <h3>${part.title}</h3>
        <${part.view} app=${app} />
      </section>`)}
    </div>
  </${Dialog}>`;
}
