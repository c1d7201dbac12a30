// Unsaved changes of documents. They are stored in the browser, so that they survive a reload and an
// unavailable hub.

const KEEP_AFTER_MS = 250;

/** The draft of one document: {base, text, note}, where `base` is the version it started from. */
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

  /** Store pending changes whenever the page may close; returns a function that stops it. */
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
