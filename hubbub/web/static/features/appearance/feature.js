// How the page looks, and the dialog in which that and other tastes are set.
import { effect, html, signal } from "../../core/ui.js";
import { lazy } from "../../parts/lazy.js";
import { t } from "../../texts.js";
import { Looks } from "./looks.js";
import { OwnMenu } from "./own-menu.js";

const Settings = lazy(() => import("./settings.js").then((module) => module.Settings));

const THEMES = ["system", "light", "dark"];

export default function appearance(app) {
  const looks = {
    theme: remembered(app.storage, "theme", "system"),
    density: remembered(app.storage, "density", "normal"),
  };
  effect(() => put("theme", looks.theme.value, "system"));
  effect(() => put("density", looks.density.value, "normal"));
  const shown = signal(false);
  app.add.settings.add({
    title: t.appearance.title, order: 10, view: () => html`<${Looks} looks=${looks} />`,
  });
  app.add.layers.add({
    view: () => shown.value && html`<${Settings} app=${app} close=${() => (shown.value = false)} />`,
  });
  app.add.bar.add({ order: 90, view: OwnMenu });
  app.add.commands.add({
    id: "settings", title: t.appearance.settings, icon: "settings", menu: 20, keys: "mod+,",
    group: t.groups.page, run: () => (shown.value = true),
  });
  app.add.commands.add({
    id: "theme", title: t.appearance.change, icon: "moon", group: t.groups.page,
    run: () => {
      looks.theme.value = THEMES[(THEMES.indexOf(looks.theme.peek()) + 1) % THEMES.length];
      app.say(t.appearance.now(t.appearance.themes[looks.theme.peek()]));
    },
  });
}

/** A signal that lasts, and is the same in all tabs. */
function remembered(storage, key, fallback) {
  const it = signal(storage.get(key, fallback));
  effect(() => storage.set(key, it.value));
  storage.watch(key, (value) => (it.value = value ?? fallback));
  return it;
}

function put(name, value, plain) {
  if (value === plain) delete document.documentElement.dataset[name];
  else document.documentElement.dataset[name] = value;
}
