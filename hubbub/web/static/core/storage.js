// What the browser keeps for this network: drafts, the outbox, a token, taste. Falls back to memory
// where storage is full or forbidden.
import { effect, signal } from "../vendor/signals.js";

export class Storage {
  /** @param {string} prefix  All keys begin with it, so that networks on one origin stay apart. */
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
      return fallback; // what another program wrote there is nothing of ours
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
      // forbidden: then it was never there
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

  /** A signal of what is kept under a key: it lasts, and is the same in all tabs. */
  remembered(key, fallback) {
    if (!this.signals.has(key)) {
      const it = signal(this.get(key, fallback));
      effect(() => it.value !== this.get(key, fallback) && this.set(key, it.value));
      this.watch(key, (value) => (it.value = value ?? fallback));
      this.signals.set(key, it);
    }
    return this.signals.get(key);
  }

  /** Calls `then(value)` when another tab changes the key; returns how to stop. */
  watch(key, then) {
    return this.follow((changed) => changed === key && then(this.get(key)));
  }

  /** Calls `then(key)` when another tab changes a key below this prefix; returns how to stop. */
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
