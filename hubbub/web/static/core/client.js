// The page's connection to the hub: the client of sdk/typescript, with signals for its status.
import { signal } from "../vendor/signals.js";
import { Client as Connection, newCid } from "../sdk/client.js";

export { CallError, newCid } from "../sdk/client.js";

export class Client extends Connection {
  constructor(url, listener, options = {}) {
    super(url, listener, { latest: true, ...options });
    this.status = signal({ state: "out" });
    this.wrote = signal(null); // the latest operation that the hub carried out
  }

  become(status) {
    super.become(status);
    this.status.value = status;
  }

  /** Call an operation that changes state. */
  write(name, args, cid = newCid()) {
    const asked = this.call(name, args, cid);
    asked.then(() => (this.wrote.value = name), () => {});
    return asked;
  }
}
