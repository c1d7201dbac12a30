// The page's appearance, and the settings dialog.
import { shownKeys } from "../../core/keys.js";
import { effect, html } from "../../core/ui.js";
import { Avatar } from "../../parts/avatar.js";
import { dialogOf } from "../../parts/dialog.js";
import { Icon } from "../../parts/icon.js";
import { lazy } from "../../parts/lazy.js";
import { Menu } from "../../parts/menu.js";
import { t } from "../../texts.js";

const Settings = lazy(() => import("./settings.js").then((module) => module.Settings));

const THEMES = ["system", "light", "dark"];

export default function appearance(app) {
  const looks = {
    theme: app.storage.remembered("theme", "system"),
    density: app.storage.remembered("density", "normal"),
  };
  effect(() => put("theme", looks.theme.value, "system"));
  effect(() => put("density", looks.density.value, "normal"));
  const settings = dialogOf(app, Settings);
  app.add.settings.add({
    title: t.appearance.title, order: 10, view: () => html`<${Looks} looks=${looks} />`,
  });
  app.add.bar.add({ order: 90, view: OwnMenu });
  app.add.commands.add({
    id: "settings", title: t.appearance.settings, icon: "settings", menu: 20, keys: "mod+,",
    group: t.groups.page, run: () => (settings.value = {}),
  });
  app.add.commands.add({
    id: "theme", title: t.appearance.change, icon: "moon", group: t.groups.page,
    run: () => {
      looks.theme.value = THEMES[(THEMES.indexOf(looks.theme.peek()) + 1) % THEMES.length];
      app.say(t.appearance.now(t.appearance.themes[looks.theme.peek()]));
    },
  });
}

function put(name, value, plain) {
  if (value === plain) delete document.documentElement.dataset[name];
  else document.documentElement.dataset[name] = value;
}

// Theme and density.

const ICONS = { system: "screen", light: "sun", dark: "moon" };

function Looks({ looks }) {
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

// The reader's own menu, at the right of the bar: their name, and the commands with a `menu` number.

function OwnMenu({ app }) {
  const me = app.state.me.value;
  return html`<${Menu} label=${t.appearance.menu(me)} items=${() => itemsOf(app, me)}>
    <${Avatar} app=${app} id=${me} size=${1.625} />
  </${Menu}>`;
}

function itemsOf(app, me) {
  const commands = [...app.add.commands].filter((command) => command.menu !== undefined);
  const items = commands.sort((a, b) => a.menu - b.menu).map((command) => ({
    title: command.title,
    icon: command.icon,
    keys: command.keys && shownKeys([command.keys].flat()[0]).flat().join(" "),
    danger: command.danger,
    run: () => app.run(command.id),
  }));
  return [
    { heading: t.appearance.joinedAs(me) },
    { title: t.appearance.profile, icon: "person", run: () => app.open("participant", me) },
    ...items.slice(0, -1),
    { line: true },
    ...items.slice(-1),
  ];
}
