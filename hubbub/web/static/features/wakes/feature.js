// Whom a message woke, and why: part of its panel. Below one's last message it says that nobody was.
import { html } from "../../core/ui.js";
import { lazy } from "../../parts/lazy.js";

const WhoWasWoken = lazy(() => import("./woken.js").then((module) => module.WhoWasWoken));
const Unasked = lazy(() => import("./unasked.js").then((module) => module.Unasked));

export default function wakes(app) {
  app.add.panels.add({ kind: "message", id: "wakes", order: 40, view: WhoWasWoken });
  app.add.marks.add({
    slot: "below", order: 20,
    view: ({ message, thread }) => isLastOfMine(app, thread, message) && html`<${Unasked} app=${app} message=${message} />`,
  });
}

/** In direct conversations agents are always asked. */
function isLastOfMine(app, thread, { sender_id: sender, tseq }) {
  if (sender !== app.state.me.value || thread.root.startsWith("dm.")) return false;
  thread.changed.value;
  return thread.said(thread.head.value, -1) === tseq;
}
