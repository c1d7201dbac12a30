// The command palette: every destination and command, by fuzzy search.
import { html } from "../../core/ui.js";
import { dialogOf } from "../../parts/dialog.js";
import { Icon } from "../../parts/icon.js";
import { Shortcut } from "../../parts/shortcut.js";
import { t } from "../../texts.js";
import { Palette } from "./palette.js";
import { Recent } from "./recent.js";

export default function palette(app) {
  const asked = dialogOf(app, Palette);
  const recent = new Recent(app.storage.within("palette"));
  app.add.bar.add({ order: 10, view: Opener });
  const open = { group: t.groups.going, hidden: true, run: (context) => (asked.value = { recent, context }) };
  app.add.commands.add({ ...open, id: "palette", title: t.palette.title, keys: "mod+k" });
  app.add.commands.add({ ...open, id: "find", title: t.palette.find, keys: "/" });
}

function Opener({ app }) {
  return html`<button class="opener" aria-label=${t.palette.title} aria-haspopup="dialog"
    onClick=${() => app.run("palette")}>
    <${Icon} name="search" size=${16} /><span class="opener-words">${t.palette.opener}</span>
    <${Shortcut} keys="mod+k" />
  </button>`;
}
