// Titles of threads, and whether they are resolved, followed or muted: from the hub, for all views of
// threads (`labels` in core/state.js).
import { effect } from "../../core/ui.js";
import { words } from "./texts.js";

const PAGE = 50;
const MOST = 300; // threads loaded at the start, the most recently active

export class Store {
  constructor(app) {
    this.app = app;
    this.labels = app.state.labels;
    this.told = new Set(); // threads with signals since the request
    this.asked = new Set(); // threads loaded because they were opened
    app.add.signals.add({ type: "mod.threads", take: (frame) => this.take(frame) });
    const unlistenReady = effect(() => app.status.value.state === "ready" && this.fetch());
    const unlistenHere = effect(() => this.opened(app.here.value, app.status.value.state === "ready"));
    this.end = () => {
      unlistenReady();
      unlistenHere();
      this.labels.value = new Map();
    };
  }

  /** Load the latest threads. Signals received meanwhile are newer than the results. */
  async fetch() {
    this.told.clear();
    this.asked.clear();
    for (let got = 0, before = null, more = true; more && got < MOST; ) {
      const page = await this.ask({ limit: PAGE, ...(before && { before }) });
      if (!page) return;
      got += page.threads.length;
      before = page.threads.at(-1)?.last_seq;
      more = page.more;
    }
  }

  /** An opened thread can be an old one. */
  opened(thread, isReady) {
    if (!thread || !isReady || this.asked.has(thread)) return;
    if (!this.app.state.threads.peek().get(thread)?.head.peek()) return; // it has no messages
    this.asked.add(thread);
    this.ask({ thread, limit: PAGE });
  }

  /** Apply the result; null if there is none. */
  async ask(args) {
    const { me } = this.app.state;
    const asker = me.peek();
    try {
      const page = await this.app.client.call("list_thread_info", args);
      if (me.peek() !== asker) return null;
      const fresh = page.threads.filter(({ thread_id: id }) => !this.told.has(id));
      this.put(fresh.map((info) => [info.thread_id, { ...stateOf(info), ...choiceOf(info) }]));
      return page;
    } catch (error) {
      if (error.code) this.app.say(error.message);
      return null;
    }
  }

  take({ data: { kind, data } }) {
    this.told.add(data.thread_id);
    this.put([[data.thread_id, kind === "chosen" ? choiceOf(data) : stateOf(data)]]);
  }

  put(changes) {
    const labels = new Map(this.labels.peek());
    for (const [id, change] of changes) labels.set(id, { ...labels.get(id), ...change });
    this.labels.value = labels;
  }

  /** Run it and show the result. */
  async write(operation, args) {
    const state = await this.app.client.write(operation, args);
    this.told.add(state.thread_id);
    this.put([[state.thread_id, "followed" in state ? choiceOf(state) : stateOf(state)]]);
    return state;
  }
}

function stateOf({ title = null, resolved_by: resolver = null }) {
  return { title, resolver, icon: resolver && "check", note: resolver && words.resolved };
}

/** Its own choice; the parent's choice, if it applies, is set there. */
function choiceOf({ thread_id: id, chosen_in: place = null, muted }) {
  return { choice: place === id ? (muted ? "muted" : "followed") : null };
}
