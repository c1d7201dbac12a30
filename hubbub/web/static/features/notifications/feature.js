// Telling a reader who looks elsewhere: the title, the sign in the tab, and the desktop if it may.
import { effect, html } from "../../core/ui.js";
import { t } from "../../texts.js";
import { Notifier } from "./notifier.js";
import { Permission } from "./permission.js";
import { showDot, titleFor } from "./title.js";
import { waiting } from "./waiting.js";

export default function notifications(app) {
  const notifier = new Notifier(app);
  effect(() => (document.title = titleFor(app)));
  effect(() => showDot(waiting(app.state) > 0));
  effect(() => notifier.arrived(app.state.arrived.value));
  app.add.settings.add({
    title: t.notifications.title, order: 20, view: () => html`<${Permission} notifier=${notifier} />`,
  });
}
