// Browser storage of one network: drafts, outbox, token, preferences. Falls back to memory if storage
// is full or not allowed.
import { effect, signal } from "../vendor/signals.js";

export class Storage {
  /** @param {string} prefix  Prefix of all keys, so that networks on one origin stay separate. */
  constructor(prefix, backing = safeBacking()) {
    this.prefix = prefix;
    this.backing = backing;
    this.memory = new Map();
    this.signals = new Map();
  }

  within(name) {
    return new Storage(`${this.prefix}${name}:`, this.backing);
  }

  get(key, fallback = null) {
    try {
      const text = this.backing?.getItem(this.prefix + key) ?? this.memory.get(key);
      return text == null ? fallback : JSON.parse(text);
    } catch {
      return fallback; // written by another program
    }
  }

  set(key, value) {
    const text = JSON.stringify(value);
    try {
      this.backing.setItem(this.prefix + key, text);
      this.memory.delete(key);
    } catch {
      this.memory.set(key, text);
    }
  }

  remove(key) {
    this.memory.delete(key);
    try {
      this.backing?.removeItem(this.prefix + key);
    } catch {
      // not allowed: then nothing was stored
    }
  }

  /** The keys below this prefix. */
  keys() {
    const found = new Set(this.memory.keys());
    for (let i = 0; i < (this.backing?.length ?? 0); i++) {
      const key = this.backing.key(i);
      if (key.startsWith(this.prefix)) found.add(key.slice(this.prefix.length));
    }
    return [...found];
  }

  /** A persistent signal for a key, shared by all tabs. */
  remembered(key, fallback) {
    if (!this.signals.has(key)) {
      const it = signal(this.get(key, fallback));
      effect(() => it.value !== this.get(key, fallback) && this.set(key, it.value));
      this.watch(key, (value) => (it.value = value ?? fallback));
      this.signals.set(key, it);
    }
    return this.signals.get(key);
  }

  /** Calls `then(value)` when another tab changes the key; returns a function that stops it. */
  watch(key, then) {
    return this.follow((changed) => changed === key && then(this.get(key)));
  }

  /** Calls `then(key)` when another tab changes a key below this prefix; returns a function that stops it. */
  follow(then) {
    const listen = ({ key }) => {
      if (key?.startsWith(this.prefix)) then(key.slice(this.prefix.length));
    };
    window.addEventListener("storage", listen);
    return () => window.removeEventListener("storage", listen);
  }
}

function safeBacking() {
  try {
    return window.localStorage;
  } catch {
    return null;
  }
}
