// What is being edited, by thread. It is kept in the browser, and there again after a reload.
import { html } from "../../core/ui.js";
import { textOf } from "../../core/messages.js";
import { lazy } from "../../parts/lazy.js";

const Form = lazy(() => import("./form.js").then((module) => module.Form), "edits.css");

export class Editing {
  constructor(app) {
    this.app = app;
    this.shown = new Set(); // threads whose composer has given way
  }

  get storage() {
    return this.app.mine.within("edit");
  }

  /** Take up what an earlier page, or an earlier visit, has begun. */
  restore() {
    this.forget();
    for (const thread of this.storage.keys()) if (this.storage.get(thread)?.id) this.show(thread);
  }

  begin(message) {
    const { thread_id: thread, id } = message;
    const begun = this.storage.get(thread);
    if (begun?.id !== id) this.keep(thread, { id, text: textOf(message), before: textOf(message) });
    this.forgetIn(thread); // what was edited there gives way
    this.show(thread);
    if (this.app.here.peek() !== thread) this.app.show(thread);
  }

  /** {id, text, before} of a thread: the message, what it shall say and what it says. */
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

  /** What is kept stays. */
  forget() {
    for (const thread of [...this.shown]) this.forgetIn(thread);
  }
}
