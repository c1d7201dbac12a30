// Polls of the mod `polls`: in their thread and in a list.
import { html } from "../../core/ui.js";
import { dialogOf } from "../../parts/dialog.js";
import { lazy } from "../../parts/lazy.js";
import { ModSignals } from "../../parts/mod-signals.js";
import { addPage } from "../../parts/pinned.js";
import { t } from "../../texts.js";
import { words } from "./texts.js";

const SHEET = "polls.css";
const Poll = lazy(() => import("./poll.js").then((module) => module.Poll), SHEET);
const Polls = lazy(() => import("./polls.js").then((module) => module.Polls), SHEET);
const Create = lazy(() => import("./create.js").then((module) => module.Create), SHEET);

export default function polls(app) {
  const news = new ModSignals(app, "mod.polls", ({ poll }) => poll);
  const creating = dialogOf(app, Create);
  const create = ({ thread }, question = "") => (creating.value = { thread, question });
  app.add.bodies.add({
    of: isOpening,
    view: ({ message }) => html`<${Poll} key=${message.content.poll} app=${app} id=${message.content.poll} news=${news} />`,
  });
  addPage(app, {
    name: "polls", title: words.title, icon: "poll", keys: "g p", ofThread: { title: words.ofThread, order: 40 },
    view: (props) => html`<${Polls} key=${props.args[0]} news=${news} create=${create} ...${props} />`,
  });
  if (app.client.may("create_poll")) addCreating(app, create);
}

/** The hub's message about a new poll; the one with the result stays text. */
function isOpening({ sender_kind: kind, content }) {
  return kind === "system" && content?.mod === "polls" && typeof content.poll === "string" && !content.outcome;
}

function addCreating(app, create) {
  app.add.threadMenu.add({ title: words.create, icon: "plus", order: 41, run: (context) => create(context) });
  app.add.commands.add({
    id: "create-poll", title: words.create, slash: "poll", hint: words.createHint, icon: "poll",
    group: t.groups.threads, run: create,
  });
}
