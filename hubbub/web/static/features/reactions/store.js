// The reactions to the messages shown: fetched for all of them in one call, then updated by signals.
import { effect, signal } from "../../core/ui.js";

const FETCH_AFTER_MS = 20;
const MOST_AT_ONCE = 100;
const KEPT = 1000; // messages whose reactions are cached

export class Store {
  constructor(app) {
    this.app = app;
    this.entries = new Map(); // message id -> {reactions, problem: signals, shown, fetched, stale}
    this.timer = 0;
    this.unlisten = effect(() => {
      if (app.status.value.state === "ready") this.forget();
    });
  }

  /** Reactions to a message being shown; call `release` afterwards. */
  hold(id) {
    const entry = this.entry(id);
    entry.shown++;
    if (!entry.fetched) this.soon();
    return entry;
  }

  release(id) {
    const entry = this.entries.get(id);
    if (entry) entry.shown--;
    if (this.entries.size <= KEPT) return;
    for (const [other, { shown }] of this.entries) if (!shown) this.entries.delete(other);
  }

  entry(id) {
    const made = () => ({ reactions: signal([]), problem: signal(null), shown: 0, fetched: false, stale: false });
    if (!this.entries.has(id)) this.entries.set(id, made());
    return this.entries.get(id);
  }

  /** Signals may have been lost: fetch everything shown again. */
  forget() {
    for (const entry of this.entries.values()) entry.fetched = false;
    this.soon();
  }

  soon() {
    this.timer ||= setTimeout(() => this.fetch(), FETCH_AFTER_MS);
  }

  async fetch() {
    this.timer = 0;
    const wanted = [...this.entries].filter(([, { shown, fetched }]) => shown && !fetched).slice(0, MOST_AT_ONCE);
    if (!wanted.length || this.app.status.peek().state !== "ready") return;
    for (const [, entry] of wanted) Object.assign(entry, { fetched: true, stale: false });
    try {
      const ids = wanted.map(([id]) => id);
      const { messages } = await this.app.client.call("list_reactions", { message_ids: ids });
      const found = new Map(messages.map((each) => [each.message_id, each.reactions]));
      for (const [id, entry] of wanted) {
        if (entry.stale) entry.fetched = false; // it changed while the request was in flight
        else entry.reactions.value = found.get(id) ?? [];
      }
    } catch (error) {
      if (error.code) this.app.say(error.message);
      return;
    }
    this.soon();
  }

  /** A signal: {message_id, reactions, by, emoji}; the change shows which are the reader's own. */
  take({ data: { kind, data } }) {
    const entry = this.entries.get(data.message_id);
    if (!entry) return;
    entry.stale = true;
    const mine = new Set(entry.reactions.peek().filter((each) => each.mine).map(({ emoji }) => emoji));
    if (data.by === this.app.state.me.peek()) {
      if (kind === "added") mine.add(data.emoji);
      else mine.delete(data.emoji);
    }
    entry.reactions.value = data.reactions.map((each) => ({ ...each, mine: mine.has(each.emoji) }));
  }

  /** Add or remove the reader's reaction. */
  async toggle(id, emoji) {
    const entry = this.entry(id);
    entry.problem.value = null;
    try {
      const now = await this.app.client.write("toggle_reaction", { message_id: id, emoji });
      entry.reactions.value = now.reactions;
    } catch (error) {
      if (error.code) entry.problem.value = error.message;
    }
  }

  end() {
    this.unlisten();
    clearTimeout(this.timer);
  }
}
