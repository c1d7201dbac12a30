// The identity this browser joins with. Names and tokens are in its storage, never in an address. Each
// tab can have another identity.
import { Storage } from "../../core/storage.js";

const LAST = "joined"; // {name} of the last person who joined and did not leave
const NAME = "name"; // the last name, even after leaving
const TOKENS = "tokens"; // name -> token
const LEFT = "left"; // {name, at} of the last person who left, for other tabs

export class Identity {
  /** @param {Storage} storage  Of all tabs. `tab`: of this one. */
  constructor(storage, tab = new Storage(storage.prefix, sessionBacking())) {
    this.storage = storage;
    this.tab = tab;
  }

  /** {name, token} to join with at once, or null. */
  get current() {
    const name = this.tab.get(LAST)?.name ?? this.storage.get(LAST)?.name;
    return name ? { name, token: this.tokenOf(name) } : null;
  }

  /** The suggested name: the last one used, otherwise one from the config, otherwise "you". */
  suggested(humans) {
    return this.storage.get(NAME) ?? humans[0] ?? "you";
  }

  get knowsName() {
    return this.storage.get(NAME) !== null;
  }

  tokenOf(name) {
    return this.storage.get(TOKENS, {})[name] ?? null;
  }

  keep(name, token) {
    for (const each of [this.tab, this.storage]) each.set(LAST, { name });
    this.storage.set(NAME, name);
    if (token) this.storage.set(TOKENS, { ...this.storage.get(TOKENS, {}), [name]: token });
  }

  /** The hub rejected this token; another tab may have stored a valid one. */
  forgetToken(name, token) {
    const { [name]: stored, ...others } = this.storage.get(TOKENS, {});
    if (stored && stored === token) this.storage.set(TOKENS, others);
  }

  /** This tab no longer joins automatically. */
  forgetHere() {
    this.tab.remove(LAST);
  }

  /** No tab joins as `name` any more, and its token is removed. */
  forget(name) {
    this.forgetHere();
    if (this.storage.get(LAST)?.name === name) this.storage.remove(LAST);
    this.forgetToken(name, this.tokenOf(name));
    this.storage.set(LEFT, { name, at: Date.now() });
  }

  /** Calls `then(name)` when another tab has left; returns a function that stops it. */
  watch(then) {
    return this.storage.watch(LEFT, (left) => left && then(left.name));
  }
}

function sessionBacking() {
  try {
    return window.sessionStorage;
  } catch {
    return null;
  }
}
