// The command palette: everywhere one can go and everything one can do, by a few letters.
import { html, signal } from "../../core/ui.js";
import { Icon } from "../../parts/icon.js";
import { Shortcut } from "../../parts/shortcut.js";
import { t } from "../../texts.js";
import { Palette } from "./palette.js";
import { Recent } from "./recent.js";

export default function palette(app) {
  const asked = signal(null); // {context, word} while the palette is shown
  const recent = new Recent(app.storage.within("palette"));
  const close = () => (asked.value = null);
  app.add.layers.add({
    view: () =>
      asked.value && html`<${Palette} app=${app} recent=${recent} close=${close} ...${asked.value} />`,
  });
  app.add.bar.add({ order: 10, view: () => html`<${Opener} app=${app} />` });
  const open = (context, word) => (asked.value = { context, word });
  app.add.commands.add({
    id: "palette", title: t.palette.title, keys: "mod+k", group: t.groups.going, hidden: true,
    run: (context) => open(context, ""),
  });
  app.add.commands.add({
    id: "find", title: t.palette.find, keys: "/", group: t.groups.going, hidden: true,
    run: (context) => open(context, ""),
  });
}

function Opener({ app }) {
  return html`<button class="opener" aria-label=${t.palette.title} aria-haspopup="dialog"
    onClick=${() => app.run("palette")}>
    <${Icon} name="search" size=${16} /><span class="opener-words">${t.palette.opener}</span>
    <${Shortcut} keys="mod+k" />
  </button>`;
}
