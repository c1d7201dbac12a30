// The messages that mention the reader, newest first, page by page; those that come in go on top.
import { effect, signal } from "../../core/ui.js";

const PAGE = 50;

export class Mentions {
  constructor(app) {
    this.app = app;
    this.messages = signal(null); // newest first; null until asked for
    this.more = signal(false);
    this.problem = signal(null);
    this.asking = false;
    effect(() => this.arrived(app.state.arrived.value));
    effect(() => {
      // Somebody else, or another log: ask anew.
      app.state.me.value;
      app.state.epoch.value;
      this.messages.value = null;
    });
  }

  /** The first page, or the next one. */
  async load() {
    if (this.asking) return;
    this.asking = true;
    const known = this.messages.peek() ?? [];
    const before = known.at(-1)?.seq;
    try {
      const args = before ? { before, limit: PAGE } : { limit: PAGE };
      const page = await this.app.client.call("list_mentions", args);
      this.messages.value = [...(this.messages.peek() ?? []), ...page.messages];
      this.more.value = page.more;
      this.problem.value = null;
    } catch (error) {
      this.problem.value = error.message;
    } finally {
      this.asking = false;
    }
  }

  arrived(message) {
    const known = this.messages.peek();
    if (!message || !known || !message.mentions.includes(this.app.state.me.peek())) return;
    if (!known.some((each) => each.seq === message.seq)) this.messages.value = [message, ...known];
  }
}
