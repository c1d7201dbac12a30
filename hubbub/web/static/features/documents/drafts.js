// Changes of documents that are not saved yet. They are kept in the browser, so that neither a
// reload nor a hub that is away loses a word.

const KEEP_AFTER_MS = 250;

/** One document's: {base, text, note}, `base` being the version that it began with. */
export class Draft {
  constructor(app, id) {
    this.storage = app.mine.within("document");
    this.id = id;
    this.timer = 0;
    this.unkept = null;
    this.keep = this.keep.bind(this);
  }

  read() {
    return this.unkept ?? this.storage.get(this.id);
  }

  write(draft) {
    this.unkept = draft;
    this.timer ||= setTimeout(this.keep, KEEP_AFTER_MS);
  }

  keep() {
    clearTimeout(this.timer);
    this.timer = 0;
    if (this.unkept) this.storage.set(this.id, this.unkept);
    this.unkept = null;
  }

  drop() {
    clearTimeout(this.timer);
    this.timer = 0;
    this.unkept = null;
    this.storage.remove(this.id);
  }

  /** Keep what is not kept yet whenever the page may go; returns how to end that. */
  watch() {
    addEventListener("pagehide", this.keep);
    document.addEventListener("visibilitychange", this.keep);
    return () => {
      removeEventListener("pagehide", this.keep);
      document.removeEventListener("visibilitychange", this.keep);
      this.keep();
    };
  }
}
