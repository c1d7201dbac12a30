// Unsent messages by thread. They are stored in the browser, so that they survive a reload of the page
// and a restart of the hub. All tabs share them.
import { signal } from "../../core/ui.js";

const KEEP_AFTER_MS = 250;

export class Drafts {
  constructor() {
    this.ids = signal(new Set()); // threads with a draft
    this.elsewhere = signal(null); // {thread} of a draft that another tab just changed
    this.storage = null;
    this.unfollow = () => {};
    this.unkept = new Map(); // thread -> draft not yet in the storage
    this.timer = 0;
  }

  /** @param storage  The person's storage for drafts. */
  open(storage) {
    this.keep();
    this.unfollow();
    this.storage = storage;
    this.unfollow = storage.follow((thread) => this.changedElsewhere(thread));
    this.ids.value = new Set(storage.keys());
  }

  /** The {text, quote} of a thread. */
  read(thread) {
    const found = this.unkept.get(thread) ?? this.storage?.get(thread);
    return { text: found?.text ?? "", quote: found?.quote ?? null };
  }

  write(thread, draft) {
    const isEmpty = !draft.text.trim() && !draft.quote;
    this.unkept.set(thread, isEmpty ? null : draft);
    this.note(thread, !isEmpty);
    if (isEmpty) this.keep(); // a sent message must not come back
    else this.timer ||= setTimeout(() => this.keep(), KEEP_AFTER_MS);
  }

  /** Concurrent changes of this tab win. */
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
