// Attachments of unsent messages, by thread: uploaded one at a time, and stored across reloads like
// drafts.
import { newCid } from "../../core/client.js";
import { signal } from "../../core/ui.js";
import { words } from "./texts.js";
import { upload } from "./transfer.js";

const NONE = [];

export class Tray {
  constructor(app, blobs = new Blobs()) {
    this.app = app;
    this.blobs = blobs;
    this.all = signal(new Map()); // thread -> [{key, name, size, state, sent, upload, file, type, problem}]
    this.storage = null;
    this.uploading = false;
    this.removed = new Set(); // keys of items removed while uploading
    this.unfollow = () => {};
  }

  /** @param storage  The storage for the attachments of the person who joined. */
  open(storage) {
    this.close();
    this.storage = storage;
    this.unfollow = storage.follow((thread) => this.restore(thread));
    for (const thread of storage.keys()) this.restore(thread);
  }

  close() {
    this.unfollow();
    this.storage = null;
    this.all.value = new Map();
  }

  /** Restore the attachments of an earlier page or another tab. */
  restore(thread) {
    const here = new Map(this.here(thread).map((item) => [item.key, item]));
    const kept = this.storage.get(thread, NONE);
    const isKnown = (item) => here.has(item.key) && !(item.file && isComing(here.get(item.key)));
    this.put(thread, kept.map((item) => (isKnown(item) ? here.get(item.key) : restored(item))));
    this.goOn();
  }

  /** The attachments of a thread; views re-render when they change. */
  of(thread) {
    return this.all.value.get(thread) ?? NONE;
  }

  here(thread) {
    return this.all.peek().get(thread) ?? NONE;
  }

  // Adding and removing ---------------------------------------------------------------------

  /** @param {Iterable<File>} files */
  async add(thread, files) {
    const added = Array.from(files, (blob) => ({
      key: newCid(), name: blob.name, size: blob.size, sent: 0, upload: null, file: null, type: null,
      ...(blob.size ? { state: "waiting", problem: null } : { state: "failed", problem: words.nothing }),
      blob,
    }));
    this.save(thread, [...this.here(thread), ...added]);
    this.goOn();
    await Promise.all(added.map(({ key, blob }) => blob.size && this.blobs.put(key, blob)));
    // Do not keep what was removed meanwhile.
    for (const { key } of added) if (!isComing(this.item(thread, key))) this.blobs.drop(key);
  }

  retry(thread, key) {
    this.change(thread, key, { state: "waiting", problem: null });
    this.goOn();
  }

  /** Cancel its upload at the hub. */
  async remove(thread, key) {
    const item = this.item(thread, key);
    if (!item) return;
    this.save(thread, this.here(thread).filter((each) => each !== item));
    this.blobs.drop(key);
    if (item.state === "sending") this.removed.add(key);
    await this.discard(item);
  }

  /** A file already sent by another tab stays. */
  async discard({ file, upload: begun }) {
    const { client } = this.app;
    try {
      if (file && !(await client.call("file_info", { id: file })).thread) {
        await client.write("delete_file", { id: file });
      } else if (begun) await client.write("cancel_upload", { upload: begun });
    } catch (error) {
      if (error.code && error.code !== "not_found") this.app.say(error.message);
    }
  }

  // Speaking --------------------------------------------------------------------------------

  with(thread) {
    const attachments = this.here(thread).map(({ name, file, type, size }) => ({
      name, uri: `file:${file}`, media_type: type, size,
    }));
    return attachments.length ? { attachments } : {};
  }

  /** Why the message cannot be sent yet, or null. */
  wait(thread) {
    const states = this.here(thread).map((item) => item.state);
    if (states.includes("failed")) return words.failed;
    return states.some((state) => state !== "there") ? words.wait : null;
  }

  instead(thread) {
    return this.of(thread).map(({ name }) => name).join(", ") || null;
  }

  said(thread) {
    if (this.here(thread).length) this.save(thread, NONE);
  }

  /** Restore the attachments of a refused message. */
  back(thread, { attachments = NONE }) {
    const files = attachments.filter(({ uri }) => uri.startsWith("file:"));
    const items = files.map(({ name, uri, media_type: type, size }) => ({
      key: newCid(), name, size, type, file: uri.slice("file:".length), upload: null, sent: size,
      state: "there", problem: null,
    }));
    if (items.length) this.save(thread, [...this.here(thread), ...items]);
  }

  // Bringing --------------------------------------------------------------------------------

  /** Upload one at a time. */
  async goOn() {
    if (this.uploading) return;
    this.uploading = true;
    for (let next; (next = this.next()); ) {
      const [thread, { key }] = next;
      await alone(key, () => this.update(thread, key) && this.bring(thread, this.item(thread, key)));
    }
    this.uploading = false;
  }

  /** [thread, item] of the first waiting upload. */
  next() {
    for (const [thread, items] of this.all.peek()) {
      const item = items.find(({ state }) => state === "waiting");
      if (item) return [thread, item];
    }
    return null;
  }

  /** Take what another tab did with a waiting item. Returns whether it still waits. */
  update(thread, key) {
    const kept = this.storage?.get(thread, NONE).find((item) => item.key === key);
    const updated = (item) => (kept ? { ...item, ...restored(kept) } : []);
    this.put(thread, this.here(thread).flatMap((item) => (item.key === key ? updated(item) : item)));
    return this.item(thread, key)?.state === "waiting";
  }

  async bring(thread, { key, name, blob = null, upload: known }) {
    const { storage } = this;
    let begun = known;
    this.change(thread, key, { state: "sending" });
    const isOver = () => this.storage !== storage || !this.item(thread, key);
    try {
      const bytes = blob ?? (await this.blobs.get(key));
      if (!bytes) return this.fail(thread, key, words.lost);
      this.change(thread, key, { blob: bytes });
      const file = await upload(this.app.client, { name, blob: bytes, known }, {
        began: (id) => this.change(thread, key, { upload: (begun = id) }),
        sent: (sent) => this.change(thread, key, { sent }, false),
        isOver,
      });
      if (!isOver()) this.arrived(thread, key, file);
      else if (this.removed.delete(key)) await this.discard({ file: file?.id, upload: begun });
    } catch (error) {
      if (error instanceof DOMException) this.fail(thread, key, words.unreadable);
      else if (error.code) this.fail(thread, key, error.message);
      // otherwise the person has left: keep it for the next time
    }
  }

  arrived(thread, key, { id: file, name, media_type: type, size }) {
    this.change(thread, key, { state: "there", file, name, type, size, sent: size, blob: null });
    this.blobs.drop(key);
  }

  fail(thread, key, problem) {
    this.change(thread, key, { state: "failed", problem, upload: null, sent: 0 });
    this.blobs.drop(key); // a reload loses it
  }

  // Items -----------------------------------------------------------------------------------

  item(thread, key) {
    return this.here(thread).find((item) => item.key === key) ?? null;
  }

  change(thread, key, changes, isKept = true) {
    if (!this.item(thread, key)) return;
    const items = this.here(thread).map((item) => (item.key === key ? { ...item, ...changes } : item));
    if (isKept) this.save(thread, items);
    else this.put(thread, items);
  }

  save(thread, items) {
    this.put(thread, items);
    const kept = items
      .filter(({ state }) => state !== "failed")
      .map(({ key, name, size, upload: id, file, type }) => ({ key, name, size, upload: id, file, type }));
    if (kept.length) this.storage?.set(thread, kept);
    else this.storage?.remove(thread);
  }

  put(thread, items) {
    const all = new Map(this.all.peek());
    if (items.length) all.set(thread, items);
    else all.delete(thread);
    this.all.value = all;
  }
}

const restored = (item) => ({ ...item, sent: 0, state: item.file ? "there" : "waiting", problem: null });

/** Only one tab at a time uploads an item; if it is closed, another one continues. */
const alone = (key, work) => navigator.locks?.request(`hubbub-files:${key}`, work) ?? work();

const isComing = (item) => item?.state === "waiting" || item?.state === "sending";

// The bytes of files not uploaded yet, in IndexedDB, so that uploads continue after a reload. If it is
// missing or full, a reload ends them.

const NAME = "hubbub-files";

class Blobs {
  constructor(factory = globalThis.indexedDB) {
    this.factory = factory;
    this.opened = null;
  }

  put(key, blob) {
    return this.ask("readwrite", (store) => store.put(blob, key));
  }

  /** Null if it is missing. */
  async get(key) {
    return (await this.ask("readonly", (store) => store.get(key))) ?? null;
  }

  drop(key) {
    return this.ask("readwrite", (store) => store.delete(key));
  }

  /** Resolves to null on any error. */
  async ask(mode, how) {
    try {
      this.opened ??= this.open();
      const store = (await this.opened).transaction(NAME, mode).objectStore(NAME);
      return await result(how(store));
    } catch {
      return null;
    }
  }

  open() {
    const asked = this.factory.open(NAME, 1);
    asked.onupgradeneeded = () => asked.result.createObjectStore(NAME);
    return result(asked);
  }
}

function result(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}
