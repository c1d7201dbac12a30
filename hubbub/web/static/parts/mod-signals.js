// Live signals of a mod, for the views that show its items.
import { batch, signal } from "../core/ui.js";

/** The latest signal overall, and by key. Both are signals. */
export class ModSignals {
  /** @param keyOf  (data, frame) => the key of a signal. */
  constructor(app, type, keyOf) {
    this.app = app;
    this.latest = signal(null); // {kind, data, thread}
    this.about = signal(new Map()); // key -> the same
    app.add.signals.add({ type, take: (frame) => this.take(frame, keyOf) });
  }

  take({ thread_id: thread, data: { kind, data } }, keyOf) {
    const news = { kind, data, thread };
    batch(() => {
      this.latest.value = news;
      this.about.value = new Map(this.about.peek()).set(keyOf(data, news), news);
    });
  }

  /** For `signs` of useWatched: any signal, or those about one key; and reconnections. */
  signs(key = null) {
    const news = key === null ? this.latest.value : this.about.value.get(key);
    return [news, this.app.status.value.state === "ready"];
  }
}
