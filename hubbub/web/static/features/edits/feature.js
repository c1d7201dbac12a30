// Messages that their authors edit and delete: the mod `edits`.
import { effect, html, signal } from "../../core/ui.js";
import { lazy } from "../../parts/lazy.js";
import { t } from "../../texts.js";
import { Editing } from "./editing.js";
import { words } from "./texts.js";

const SHEET = "edits.css";
const Edited = lazy(() => import("./edited.js").then((module) => module.Edited), SHEET);
const RemoveDialog = lazy(() => import("./remove.js").then((module) => module.RemoveDialog), SHEET);
const HistoryDialog = lazy(() => import("./history.js").then((module) => module.HistoryDialog), SHEET);

export default function edits(app) {
  const editing = new Editing(app);
  const removing = signal(null); // a message, while somebody is asked
  const history = signal(null); // a message, while its history is shown
  app.add.marks.add({
    slot: "below", order: 10,
    view: ({ message }) => message.amended === "edited" && html`<${Edited} show=${() => (history.value = message)} />`,
  });
  addDeeds(app, editing, removing, history);
  const dialog = (view, about) => ({
    view: () => about.value && html`<${view} app=${app} message=${about.value} close=${() => (about.value = null)} />`,
  });
  app.add.layers.add(dialog(RemoveDialog, removing));
  app.add.layers.add(dialog(HistoryDialog, history));
  const unlisten = effect(() => app.state.me.value && editing.restore());
  return () => {
    unlisten();
    editing.forget();
  };
}

function addDeeds(app, editing, removing, history) {
  const { messageMenu, commands } = app.add;
  const isMine = ({ message }) => isOwn(app, message);
  const mayEdit = ({ message }) => message !== null && isMine({ message }) && isText(message);
  const mayRemove = ({ message }) =>
    message !== null && isSaid(message) && (isMine({ message }) || app.state.owner.peek());
  const edit = ({ message }) => editing.begin(message);
  const remove = ({ message }) => (removing.value = message);
  messageMenu.add({ title: words.edit, icon: "edit", keys: "E", order: 10, when: mayEdit, run: edit });
  messageMenu.add({
    title: words.history, icon: "clock", order: 20, when: ({ message }) => message?.amended === "edited",
    run: ({ message }) => (history.value = message),
  });
  messageMenu.add({ title: words.remove, icon: "remove", danger: true, order: 90, when: mayRemove, run: remove });
  const group = t.conversation.group;
  commands.add({ id: "edit-message", title: words.editCommand, group, keys: "e", icon: "edit", when: mayEdit, run: edit });
  commands.add({
    id: "delete-message", title: words.removeCommand, group, keys: "delete", icon: "remove", when: mayRemove,
    run: remove,
  });
  const usual = commands.find(({ id }) => id === "my-last-message");
  commands.add({
    ...usual, order: 10, hidden: true,
    run: (context) => {
      const last = lastOf(app, context.thread);
      if (last && mayEdit({ message: last })) editing.begin(last);
      else usual.run(context);
    },
  });
}

const isOwn = (app, { sender_id: sender, spoken_by: person }) =>
  [sender, person].includes(app.state.me.peek());

/** Said by somebody, and not taken back; the record of a request, and of another network, stays as it is. */
const isSaid = ({ sender_kind: kind, amended, request, imported }) =>
  kind !== "system" && amended !== "deleted" && !request && !imported;

const isText = (message) => isSaid(message) && typeof message.content === "string";

/** The reader's last message in a thread, if it is among those that are here. */
function lastOf(app, id) {
  const thread = app.state.threads.peek().get(id);
  for (let at = thread?.head.peek() ?? 0; at > 0; at--) {
    const message = thread.at(at);
    if (!message) return null;
    if (!message.amends && isOwn(app, message) && message.amended !== "deleted") return message;
  }
  return null;
}
