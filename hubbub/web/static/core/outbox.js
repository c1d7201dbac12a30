// Messages that were sent but not yet confirmed by the hub. They survive reloads, and each entry keeps
// its cid, so that sending it again stores it once.
import { Closed, newCid } from "./client.js";

export class Outbox {
  /**
   * @param {import("./storage.js").Storage} storage  The person's part of it.
   * @param write  (name, args, cid) => Promise of the operation's value
   * @param {{changed, stored}} listener  Notified of every change, and of the result of an entry.
   */
  constructor(storage, write, listener) {
    this.storage = storage;
    this.write = write;
    this.listener = listener;
    this.entries = new Map(); // cid -> entry
    this.delivering = new Set(); // threads with an entry being sent
    /** Ends watching for refused entries that another tab discards or sends again. */
    this.close = storage.follow((cid) => {
      if (this.entries.get(cid)?.state === "refused" && storage.get(cid) === null) this.drop(this.entries.get(cid));
    });
  }

  /** Restore the entries of an earlier page. */
  restore() {
    const left = this.storage.keys().map((key) => this.storage.get(key)).filter((entry) => entry?.cid);
    for (const entry of left.sort((a, b) => a.at - b.at)) this.push(entry);
  }

  /**
   * Send a message: `name` and `args` are the operation, `thread` and `text` are shown meanwhile.
   * Returns the entry: {cid, name, args, thread, text, at, state, error}.
   */
  say({ name, args, thread, text }) {
    const entry = { cid: newCid(), name, args, thread, text, at: Date.now(), state: "sending" };
    this.storage.set(entry.cid, entry);
    this.push(entry);
    return entry;
  }

  /** Retry a refused entry as a new write. */
  again(entry) {
    this.drop(entry);
    return this.say(entry);
  }

  /** Remove an entry. */
  drop(entry) {
    this.entries.delete(entry.cid);
    this.storage.remove(entry.cid);
    this.listener.changed(entry.thread, this.of(entry.thread));
  }

  of(thread) {
    return [...this.entries.values()].filter((entry) => entry.thread === thread);
  }

  push(entry) {
    this.entries.set(entry.cid, entry);
    this.listener.changed(entry.thread, this.of(entry.thread));
    this.deliverTo(entry.thread);
  }

  /** One at a time: a rate-limited hub could otherwise accept later entries before earlier ones. */
  async deliverTo(thread) {
    if (this.delivering.has(thread)) return;
    this.delivering.add(thread);
    const next = () => this.of(thread).find((entry) => entry.state === "sending");
    for (let entry = next(); entry; entry = (await this.deliver(entry)) ? next() : null);
    this.delivering.delete(thread);
  }

  /** Returns whether the hub answered. */
  async deliver(entry) {
    try {
      const result = await this.write(entry.name, entry.args, entry.cid);
      this.entries.delete(entry.cid);
      this.storage.remove(entry.cid);
      this.listener.stored(entry, result, this.of(entry.thread));
    } catch (error) {
      if (!error.code || error instanceof Closed) return false; // disconnected: keep it for the next time
      const refused = { ...entry, state: "refused", error: error.message };
      this.entries.set(entry.cid, refused);
      this.storage.set(entry.cid, refused);
      this.listener.changed(entry.thread, this.of(entry.thread));
    }
    return true;
  }
}
