// What was begun and not sent, by thread. Kept in the browser's storage, so that neither a reload
// nor a restart of the hub loses a word.
import { signal } from "../../core/ui.js";

const KEEP_AFTER_MS = 250;

export class Drafts {
  constructor() {
    this.ids = signal(new Set()); // threads that have one
    this.storage = null;
    this.unkept = new Map(); // thread -> draft that is not in the storage yet
    this.timer = 0;
  }

  /** @param storage  Where the drafts of the one who has joined are. */
  open(storage) {
    this.keep();
    this.storage = storage;
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
    if (isEmpty === this.ids.peek().has(thread)) {
      const ids = new Set(this.ids.peek());
      if (isEmpty) ids.delete(thread);
      else ids.add(thread);
      this.ids.value = ids;
    }
    if (isEmpty) this.keep(); // what was sent must not come back
    else this.timer ||= setTimeout(() => this.keep(), KEEP_AFTER_MS);
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
