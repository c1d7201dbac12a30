// What was begun and not sent, by thread. Kept in the browser's storage, so that neither a reload
// nor a restart of the hub loses a word. All tabs have the same.
import { signal } from "../../core/ui.js";

const KEEP_AFTER_MS = 250;

export class Drafts {
  constructor() {
    this.ids = signal(new Set()); // threads that have one
    this.elsewhere = signal(null); // {thread}: where another tab has changed one just now
    this.storage = null;
    this.unfollow = () => {};
    this.unkept = new Map(); // thread -> draft that is not in the storage yet
    this.timer = 0;
  }

  /** @param storage  Where the drafts of the one who has joined are. */
  open(storage) {
    this.keep();
    this.unfollow();
    this.storage = storage;
    this.unfollow = storage.follow((thread) => this.changedElsewhere(thread));
    this.ids.value = new Set(storage.keys());
  }

  /** {text, quote} of a thread. */
  read(thread) {
    const found = this.unkept.get(thread) ?? this.storage?.get(thread);
    return { text: found?.text ?? "", quote: found?.quote ?? null };
  }

  write(thread, draft) {
    const isEmpty = !draft.text.trim() && !draft.quote;
    this.unkept.set(thread, isEmpty ? null : draft);
    this.note(thread, !isEmpty);
    if (isEmpty) this.keep(); // what was sent must not come back
    else this.timer ||= setTimeout(() => this.keep(), KEEP_AFTER_MS);
  }

  /** What is written here at the same time wins. */
  changedElsewhere(thread) {
    if (this.unkept.has(thread)) return;
    this.note(thread, this.storage.get(thread) !== null);
    this.elsewhere.value = { thread };
  }

  note(thread, hasOne) {
    if (hasOne === this.ids.peek().has(thread)) return;
    const ids = new Set(this.ids.peek());
    if (hasOne) ids.add(thread);
    else ids.delete(thread);
    this.ids.value = ids;
  }

  keep() {
    clearTimeout(this.timer);
    this.timer = 0;
    for (const [thread, draft] of this.unkept) {
      if (draft) this.storage.set(thread, draft);
      else this.storage.remove(thread);
    }
    this.unkept.clear();
  }
}
