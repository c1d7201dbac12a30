// Editing and deleting one's own messages: the mod `edits`.
import { textOf } from "../../core/messages.js";
import { effect, html } from "../../core/ui.js";
import { dialogOf } from "../../parts/dialog.js";
import { lazy } from "../../parts/lazy.js";
import { t } from "../../texts.js";
import { words } from "./texts.js";

const SHEET = "edits.css";
const Edited = lazy(() => import("./history.js").then((module) => module.Edited), SHEET);
const RemoveDialog = lazy(() => import("./remove.js").then((module) => module.RemoveDialog), SHEET);
const HistoryDialog = lazy(() => import("./history.js").then((module) => module.HistoryDialog), SHEET);

export default function edits(app) {
  const editing = new Editing(app);
  const removing = dialogOf(app, RemoveDialog);
  const history = dialogOf(app, HistoryDialog);
  app.add.marks.add({
    slot: "below", order: 10,
    view: ({ message }) => message.amended === "edited" && html`<${Edited} show=${() => (history.value = { message })} />`,
  });
  addDeeds(app, editing, removing, history);
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
  const remove = ({ message }) => (removing.value = { message });
  messageMenu.add({ title: words.edit, icon: "edit", keys: "E", order: 10, when: mayEdit, run: edit });
  messageMenu.add({
    title: words.history, icon: "clock", order: 20, when: ({ message }) => message?.amended === "edited",
    run: ({ message }) => (history.value = { message }),
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
      const thread = app.state.threads.peek().get(context.thread);
      const last = thread?.last((message) => isOwn(app, message) && message.amended !== "deleted");
      if (last && mayEdit({ message: last })) editing.begin(last);
      else usual.run(context);
    },
  });
}

const isOwn = (app, { sender_id: sender, sent_by: person }) =>
  [sender, person].includes(app.state.me.peek());

/** The message is not deleted; records of requests and imported messages cannot be changed. */
const isSaid = ({ sender_kind: kind, amended, request, imported }) =>
  kind !== "system" && amended !== "deleted" && !request && !imported;

const isText = (message) => isSaid(message) && typeof message.content === "string";

// The messages being edited, by thread. They are stored in the browser and survive a reload.

const Form = lazy(() => import("./form.js").then((module) => module.Form), "edits.css");

class Editing {
  constructor(app) {
    this.app = app;
    this.shown = new Set(); // threads whose composer is replaced
    this.storage = null;
    this.unfollow = () => {};
  }

  /** Restore the edits of an earlier page or visit. */
  restore() {
    this.forget();
    this.storage = this.app.mine.within("edit");
    this.unfollow = this.storage.follow((thread) => this.read(thread) || this.forgetIn(thread));
    for (const thread of this.storage.keys()) if (this.storage.get(thread)?.id) this.show(thread);
  }

  begin(message) {
    const { thread_id: thread, id } = message;
    const begun = this.storage.get(thread);
    if (begun?.id !== id) this.keep(thread, { id, text: textOf(message), before: textOf(message) });
    this.forgetIn(thread); // replace an earlier edit in this thread
    this.show(thread);
    if (this.app.here.peek() !== thread) this.app.show(thread);
  }

  /** The edit in a thread, {id, text, before}: the message, its new text and its current text. */
  read(thread) {
    return this.storage.get(thread);
  }

  keep(thread, draft) {
    this.storage.set(thread, draft);
  }

  end(thread) {
    this.storage.remove(thread);
    this.forgetIn(thread);
    this.app.run("compose");
  }

  show(thread) {
    const { instead } = this.app.compose;
    const { id } = this.read(thread);
    const view = (props) => html`<${Form} key=${id} app=${this.app} editing=${this} ...${props} />`;
    this.shown.add(thread);
    instead.value = new Map(instead.peek()).set(thread, view);
  }

  forgetIn(thread) {
    const { instead } = this.app.compose;
    const left = new Map(instead.peek());
    this.shown.delete(thread);
    if (left.delete(thread)) instead.value = left;
  }

  /** Stored edits stay. */
  forget() {
    this.unfollow();
    for (const thread of [...this.shown]) this.forgetIn(thread);
  }
}
