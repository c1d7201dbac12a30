// Notices about missing answers, as cards with the reason and possible actions.
import { html } from "../../core/ui.js";
import { lazy } from "../../parts/lazy.js";
import { t } from "../../texts.js";

const NoAnswer = lazy(() => import("./no-answer.js").then((module) => module.NoAnswer));

/** Codes of notices: the outcome of a turn, or that no agent answered. */
const CODES = new Set([...Object.keys(t.turns.meanings), "silence"]);

export default function notices(app) {
  app.add.bodies.add({
    of: ({ sender_kind: kind, content }) =>
      kind === "system" && CODES.has(content?.code) && Array.isArray(content.messages),
    view: ({ message }) => html`<${NoAnswer} app=${app} message=${message} />`,
  });
}
