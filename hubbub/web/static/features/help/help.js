// The shortcuts of all commands, by group.
import { html } from "../../core/ui.js";
import { Dialog } from "../../parts/dialog.js";
import { Shortcut } from "../../parts/shortcut.js";
import { t } from "../../texts.js";

export function Help({ app, close }) {
  const groups = new Map();
  for (const command of app.add.commands.items.value) {
    if (!command.keys?.length) continue;
    const group = command.group ?? t.groups.other;
    groups.set(group, [...(groups.get(group) ?? []), command]);
  }
  return html`<${Dialog} title=${t.help.title} close=${close} className="help">
    <div class="body" tabindex="0">
      ${[...groups].map(([group, commands]) => html`<section key=${group}>
        <h3>${group}</h3>
        <ul>${commands.map((command) => html`<li key=${command.id}>
          <span>${command.title}</span><${Shortcut} keys=${command.keys} />
        </li>`)}</ul>
      </section>`)}
    </div>
  </${Dialog}>`;
}
