// The app object that every feature gets. It combines client, state, outbox, router and registry, and
// has the few methods that most features use: send, read, open, show.
import { batch, computed, signal } from "../vendor/signals.js";
import { Client } from "./client.js";
import { directThread, replyThread } from "./ids.js";
import { Keys } from "./keys.js";
import { Outbox } from "./outbox.js";
import { Registry } from "./registry.js";
import { retry } from "./retry.js";
import { Router } from "./router.js";
import { State } from "./state.js";
import { PAGE } from "./thread.js";

const MARK_AFTER_MS = 300;
const MOST_REPLIES = 1000; // threads; beyond them reply threads are left out

export class App {
  /**
   * @param {object} options
   * @param options.about  What the page says: `network`, `auth` ("open" or "tokens"), `humans`.
   * @param {string} options.url  Of the WebSocket.
   * @param {import("./storage.js").Storage} options.storage
   */
  constructor({ about, url, storage }) {
    this.about = about;
    this.storage = storage;
    this.add = new Registry();
    this.state = new State();
    this.client = new Client(url, this.listener());
    this.status = this.client.status;
    this.router = new Router();
    this.route = this.router.route;
    this.focused = signal(null); // the message that commands apply to: {thread, message}
    this.receipts = signal(new Map()); // message id -> the hub's result of sending it
    this.here = computed(() => this.shownThread()); // id of the thread in the middle, or null
    this.said = signal(null); // the latest notice: {text, at}
    this.leftShown = storage.remembered("left", true); // whether wide screens show the left column
    this.marking = new Map(); // thread -> {mark, timer}: read marks to be sent soon
    this.fetching = new Map(); // "thread:first" -> promise
    this.offered = []; // features that need an operation of the hub: {needs, load, back, loading}
    this.outbox = null;
    this.keys = new Keys(this.add.commands, () => this.context());
  }

  /** Add features: functions of the app. */
  use(features) {
    for (const feature of features) feature(this);
  }

  /** Add features that depend on an operation of the hub: {needs: an operation, load: () => its module}. */
  useOffered(features) {
    this.offered.push(...features.map((feature) => ({ ...feature, back: null, loading: false })));
  }

  /** Load the features whose operation the hub has; remove what the others added. */
  takeOffered() {
    for (const feature of this.offered) {
      if (this.client.may(feature.needs)) {
        this.fetchOffered(feature);
      } else {
        feature.back?.();
        feature.back = null;
      }
    }
  }

  async fetchOffered(feature) {
    if (feature.back || feature.loading) return;
    feature.loading = true;
    try {
      const { default: add } = await retry(feature.load);
      if (this.client.may(feature.needs)) feature.back = this.add.during(() => add(this));
    } catch (error) {
      this.say(error.message); // retried with the next connection
    }
    feature.loading = false;
  }

  // Joining ---------------------------------------------------------------------------------

  join(participant, token = null, card = null) {
    this.state.forget();
    this.said.value = null; // it was meant for the previous person
    this.mine = this.storage.within(participant);
    this.outbox?.close();
    this.outbox = new Outbox(
      this.mine.within("outbox"),
      (name, args, cid) => this.client.write(name, args, cid),
      {
        changed: (thread, entries) => (this.state.thread(thread).pending.value = entries),
        stored: (entry, result, rest) => this.stored(entry, result, rest),
      },
    );
    this.client.join(participant, token, card);
    this.outbox.restore();
  }

  leave() {
    this.client.leave();
    this.state.forget();
    this.state.me.value = null;
  }

  listener() {
    return {
      ready: (frame, hello) => this.ready(frame, hello),
      event: (frame) => this.event(frame),
      signal: (frame) => this.signal(frame),
    };
  }

  event(frame) {
    this.state.event(frame);
    const { thread_id: id } = frame.message;
    if (id !== /** @type {any} */ (this.here).peek()) this.state.thread(id).rest(); // the shown one unloads by place
  }

  signal(frame) {
    this.state.signal(frame);
    for (const { type, take } of this.add.signals.items.peek()) if (type === frame.type) take(frame);
  }

  ready(frame, hello) {
    this.state.ready(frame, hello);
    this.takeOffered();
    if (!frame.resumed) {
      this.receipts.value = new Map();
      for (const entry of this.outbox.entries.values()) {
        this.state.thread(entry.thread).pending.value = this.outbox.of(entry.thread);
      }
      this.tried(() => this.catchUp(frame.threads));
    }
    this.tried(() => this.state.control.refresh(this.client));
  }

  /** `ready` has the latest threads; fetch the others, and mentions. */
  async catchUp(threads) {
    const { messages } = await this.client.call("list_mentions", { limit: 100 });
    batch(() => messages.forEach((message) => this.state.mention(message)));
    let last = threads.at(-1)?.last_seq;
    for (let got = threads.length; last; ) {
      const few = got < MOST_REPLIES ? {} : { without_replies: true };
      const page = await this.client.call("list_threads", { before: last, limit: 200, ...few });
      if (!page.threads.length) return;
      batch(() => this.state.summaries(page.threads));
      got += page.threads.length;
      last = page.threads.at(-1).last_seq;
    }
  }

  // Saying ----------------------------------------------------------------------------------

  /** Send `text` to a thread; shown at once, stored soon. */
  send(thread, text, extra = {}) {
    const args = { to: thread, text, ...extra };
    return this.outbox.say({ name: "send_text_message", args, thread, text });
  }

  /** Send `text` as a reply to a message, in its own thread. */
  reply(message, text, extra = {}) {
    const thread = replyThread(message.thread_id, message.seq);
    const args = { message_id: message.id, text, ...extra };
    return this.outbox.say({ name: "reply", args, thread, text });
  }

  /** Send `text` to any thread. */
  speak(thread, text, extra = {}) {
    const { parent, repliesTo: seq } = thread;
    if (parent) return this.reply({ id: `m${seq}`, seq, thread_id: parent }, text, extra);
    return this.send(thread.id, text, extra);
  }

  stored(entry, result, rest) {
    batch(() => {
      this.receipts.value = new Map(this.receipts.peek()).set(result.id, result);
      const thread = this.state.thread(result.thread_id);
      if (!thread.at(result.tseq)) this.state.message(result.message);
      this.state.thread(entry.thread).pending.value = rest;
      if (thread.read.peek() >= result.tseq - 1) this.readUpTo(result.thread_id, result.tseq);
    });
    if (result.notes?.length) this.say(result.notes.join(" "));
  }

  // Reading ---------------------------------------------------------------------------------

  /** Ensure that positions from..to of a thread are loaded. Resolves when they are. */
  async load(id, from, to) {
    const thread = this.state.thread(id);
    for (let gap; (gap = thread.missing(from, to)); ) {
      const before = gap[1] + 1;
      const limit = Math.min(100, Math.max(PAGE, gap[1] - gap[0] + 1));
      const key = `${id}:${before}:${limit}`;
      if (!this.fetching.has(key)) {
        const asked = this.client
          .call("read_thread", { thread: id, before, limit })
          .finally(() => this.fetching.delete(key));
        this.fetching.set(key, asked);
      }
      const page = await this.fetching.get(key);
      if (!page.messages.length) return;
      thread.take(page.messages);
    }
  }

  /** A message by its id, in any thread. Rejects with a CallError. */
  async message(id) {
    for (const thread of this.state.threads.peek().values()) {
      for (const message of thread.messages.values()) if (message.id === id) return message;
    }
    return this.client.call("read_message", { id });
  }

  /** Fetch channels and their members; the hub's signals about them arrive a moment later. */
  async refreshChannels() {
    const { channels } = await this.client.call("list_channels");
    this.state.channels.value = new Map(channels.map((channel) => [channel.name, channel]));
  }

  /** Record that the reader has seen the thread up to here. */
  readUpTo(id, tseq) {
    const thread = this.state.thread(id);
    if (tseq <= thread.read.peek()) return;
    thread.read.value = tseq;
    if (!this.state.takesPart(id)) return; // the hub stores no read marks for non-members
    thread.marking = tseq;
    clearTimeout(this.marking.get(id)?.timer);
    const mark = () => this.mark(thread, "mark_read", { upto: tseq });
    this.marking.set(id, { mark, timer: setTimeout(mark, MARK_AFTER_MS) });
  }

  /** Send read marks now, because the reader leaves the page or a thread. Resolves when the hub has them. */
  settle() {
    const due = [...this.marking.values()];
    due.forEach(({ timer }) => clearTimeout(timer));
    return Promise.all(due.map(({ mark }) => mark()));
  }

  /** Mark messages from `tseq` on as unread. */
  async unreadFrom(id, tseq) {
    const thread = this.state.thread(id);
    clearTimeout(this.marking.get(id)?.timer);
    thread.read.value = thread.marking = tseq - 1;
    await this.mark(thread, "mark_unread", { since: tseq });
  }

  async mark(thread, operation, args) {
    const asked = thread.marking;
    this.marking.delete(thread.id);
    await this.tried(() => this.client.write(operation, { thread: thread.id, ...args }));
    if (thread.marking === asked) thread.marking = null;
  }

  // Going places ----------------------------------------------------------------------------

  /** Show a thread, at a message of it if one is given. */
  show(thread, message = null) {
    this.router.go("thread", message ? [thread, message] : [thread]);
  }

  /** Show a message in any thread, unless the reader navigates elsewhere before it is loaded. */
  async showMessage(id) {
    const from = this.route.peek();
    await this.tried(async () => {
      const { thread_id: thread } = await this.message(id);
      if (this.route.peek() === from) this.show(thread, id);
    });
  }

  /** Show the conversation with one or more participants. */
  talkTo(...participants) {
    const thread = directThread(this.state.me.peek(), ...participants);
    this.state.thread(thread);
    this.show(thread);
  }

  /** Open a panel on the right: a message, thread, participant, turn or interaction. */
  open(kind, id) {
    this.router.open(kind, id);
  }

  close() {
    this.router.open(null);
  }

  shownThread() {
    const { view, args } = this.route.value;
    return view === "thread" && args[0] ? args[0] : null;
  }

  /** The context of commands. */
  context() {
    const focused = this.focused.peek();
    return { thread: /** @type {any} */ (this.here).peek(), message: focused?.message ?? null, text: "" };
  }

  /** Run a command by its id. */
  run(id, context = this.context(), rest = "") {
    return this.add.commands.find((command) => command.id === id)?.run(context, rest);
  }

  /** Run it and show the hub's refusal, or `said` on success. Resolves to whether it succeeded. */
  async tried(work, said = null) {
    try {
      await work();
      if (said) this.say(said);
      return true;
    } catch (error) {
      if (error.code) this.say(error.message); // otherwise the person has left
      return false;
    }
  }

  /** Copy a text to the clipboard. */
  copy(text, said) {
    navigator.clipboard.writeText(text).then(() => this.say(said), (error) => this.say(error.message));
  }

  /** Show a one-line notice, also to screen readers. */
  say(text) {
    this.said.value = { text, at: Date.now() };
  }
}
