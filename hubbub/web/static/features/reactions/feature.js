// Reactions of the mod `reactions`: below messages, and a picker.
import { html } from "../../core/ui.js";
import { dialogOf } from "../../parts/dialog.js";
import { Icon } from "../../parts/icon.js";
import { lazy } from "../../parts/lazy.js";
import { t } from "../../texts.js";
import { Store } from "./store.js";
import { words } from "./texts.js";

const SHEET = "reactions.css";
const Row = lazy(() => import("./row.js").then((module) => module.Row), SHEET);
const Picker = lazy(() => import("./picker.js").then((module) => module.Picker), SHEET);

export default function reactions(app) {
  const store = new Store(app);
  const may = app.client.may("toggle_reaction");
  const picking = dialogOf(app, Picker);
  const pick = (message, at) => (picking.value = { key: message.id, store, message, at });
  app.add.signals.add({ type: "mod.reactions", take: (frame) => store.take(frame) });
  app.add.marks.add({
    slot: "below", order: 20,
    view: ({ message }) => html`<${Row} key=${message.id} store=${store} message=${message}
      pick=${may ? pick : null} />`,
  });
  if (may) addPicking(app, pick);
  return () => store.end();
}

function addPicking(app, pick) {
  app.add.marks.add({
    slot: "action", order: 5,
    view: ({ message }) => html`<button type="button" class="icon small" aria-label=${words.react}
      title=${words.reactKey} onClick=${(event) => pick(message, event.currentTarget)}>
      <${Icon} name="smile" /></button>`,
  });
  app.add.commands.add({
    id: "react", title: words.add, group: t.conversation.group, keys: "a", icon: "smile",
    when: ({ message }) => message !== null,
    run: ({ message }) => pick(message, document.querySelector(`[data-message="${CSS.escape(message.id)}"]`)),
  });
}
