// Messages that mention the reader, newest first, page by page; new ones are added on top.
import { effect, signal } from "../../core/ui.js";

const PAGE = 50;

export class Mentions {
  constructor(app) {
    this.app = app;
    this.messages = signal(null); // newest first; null until loaded
    this.more = signal(false);
    this.problem = signal(null);
    this.asking = false;
    this.early = []; // arrived while the first page was loading, which may not have them
    effect(() => this.arrived(app.state.arrived.value));
    effect(() => {
      // Another person or another log: load again.
      app.state.me.value;
      app.state.epoch.value;
      this.messages.value = null;
      this.early = [];
    });
  }

  /** Load the first page, or the next one. */
  async load() {
    if (this.asking) return;
    this.asking = true;
    const known = this.messages.peek() ?? [];
    const before = known.at(-1)?.seq;
    this.early = [];
    try {
      const args = before ? { before, limit: PAGE } : { limit: PAGE };
      const page = await this.app.client.call("list_mentions", args);
      const isNew = ({ seq }) => !page.messages.some((each) => each.seq === seq);
      const shown = this.messages.peek() ?? this.early.filter(isNew);
      this.messages.value = [...shown, ...page.messages];
      this.more.value = page.more;
      this.problem.value = null;
    } catch (error) {
      this.problem.value = error.message;
    } finally {
      this.asking = false;
    }
  }

  arrived(message) {
    if (!message?.mentions.includes(this.app.state.me.peek())) return;
    const known = this.messages.peek();
    if (known?.some((each) => each.seq === message.seq)) return;
    if (known) this.messages.value = [message, ...known];
    else if (this.asking) this.early = [message, ...this.early];
  }
}
