// Interactions and threads as sequence diagrams.
import { html } from "../../core/ui.js";
import { Icon } from "../../parts/icon.js";
import { lazy } from "../../parts/lazy.js";
import { t } from "../../texts.js";

const Interaction = lazy(() => import("./views.js").then((module) => module.Interaction), "interaction.css");
const CostLine = lazy(() => import("./cost-line.js").then((module) => module.CostLine));
const ThreadSequence = lazy(() => import("./views.js").then((module) => module.ThreadSequence), "interaction.css");

export default function interaction(app) {
  app.add.views.add({ name: "interaction", view: Interaction, title: ([id = ""]) => t.interaction.title(id) });
  app.add.views.add({ name: "sequence", view: ThreadSequence, title: () => t.interaction.diagram });
  app.add.tools.add({ order: 60, view: AsDiagram });
  const open = {
    title: t.interaction.open, icon: "sequence", when: ({ message }) => message !== null,
    run: ({ message }) => app.router.go("interaction", [message.interaction_id]),
  };
  app.add.commands.add({ ...open, id: "interaction.open", group: t.conversation.group, keys: "w" });
  app.add.messageMenu.add({ ...open, order: 45, keys: "W" });
  app.add.marks.add({
    slot: "below", order: 90,
    view: ({ message, thread }) => isLastAnswer(thread, message) && html`<${CostLine} app=${app} message=${message} />`,
  });
  app.add.commands.add({
    id: "sequence.open", title: t.interaction.threadAsDiagram, icon: "sequence",
    when: ({ thread }) => thread !== null,
    run: ({ thread }) => app.router.go("sequence", [thread]),
  });
}

/** In a thread's header. */
function AsDiagram({ app, thread }) {
  return html`
    <a class="icon" href=${app.router.href("sequence", [thread.id])}
      aria-label=${t.interaction.threadAsDiagram} title=${t.interaction.threadAsDiagram}>
      <${Icon} name="sequence" /><span class="word">${t.interaction.asDiagram}</span>
    </a>
  `;
}

// Messages of a thread that are final answers of an interaction.

const FAR = 30; // messages that are searched

/** Whether an agent sent it, and no agent sent more of the same interaction to this thread. */
function isLastAnswer(thread, { sender_kind: kind, sent_by: person, interaction_id: id, seq, tseq }) {
  if (kind !== "agent" || person || id === `i${seq}`) return false; // an unprompted message is not an answer
  thread.changed.value;
  for (let at = tseq + 1; at <= tseq + FAR; at++) {
    const next = thread.at(at);
    if (next?.interaction_id === id && next.sender_kind === "agent" && !next.amends) return false;
  }
  return true;
}
