// Polls of the mod `polls`: in their thread where they were asked, and in a list.
import { html, signal } from "../../core/ui.js";
import { lazy } from "../../parts/lazy.js";
import { News } from "../../parts/news.js";
import { t } from "../../texts.js";
import { words } from "./texts.js";

const SHEET = "polls.css";
const Poll = lazy(() => import("./poll.js").then((module) => module.Poll), SHEET);
const Polls = lazy(() => import("./polls.js").then((module) => module.Polls), SHEET);
const Create = lazy(() => import("./create.js").then((module) => module.Create), SHEET);

export default function polls(app) {
  const news = new News(app, "mod.polls", ({ poll }) => poll);
  const creating = signal(null); // {thread, question} while somebody writes one
  const create = ({ thread }, question = "") => (creating.value = { thread, question });
  app.add.bodies.add({
    of: isOpening,
    view: ({ message }) => html`<${Poll} key=${message.content.poll} app=${app} id=${message.content.poll} news=${news} />`,
  });
  app.add.views.add({
    name: "polls", title: () => words.title,
    view: (props) => html`<${Polls} key=${props.args[0]} news=${news} create=${create} ...${props} />`,
  });
  app.add.threadMenu.add({
    title: words.ofThread, icon: "poll", order: 40, run: ({ thread }) => app.router.go("polls", [thread]),
  });
  app.add.commands.add({
    id: "polls", title: words.title, slash: "polls", keys: "g p", icon: "poll", group: t.groups.going,
    run: () => app.router.go("polls"),
  });
  if (app.client.may("create_poll")) addCreating(app, creating, create);
}

/** The hub's message about a new poll; that of the result stays text. */
function isOpening({ sender_kind: kind, content }) {
  return kind === "system" && content?.mod === "polls" && typeof content.poll === "string" && !content.outcome;
}

function addCreating(app, creating, create) {
  app.add.threadMenu.add({ title: words.create, icon: "plus", order: 41, run: (context) => create(context) });
  app.add.commands.add({
    id: "create-poll", title: words.create, slash: "poll", hint: words.createHint, icon: "poll",
    group: t.groups.threads, run: create,
  });
  app.add.layers.add({
    view: () => creating.value &&
      html`<${Create} app=${app} ...${creating.value} close=${() => (creating.value = null)} />`,
  });
}
