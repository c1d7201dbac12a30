// The page's connection to the hub: that of sdk/typescript, with signals of how it stands.
import { signal } from "../vendor/signals.js";
import { Client as Connection, newCid } from "../sdk/client.js";

export { CallError, newCid } from "../sdk/client.js";

export class Client extends Connection {
  constructor(url, listener, options = {}) {
    super(url, listener, { latest: true, ...options });
    this.status = signal({ state: "out" });
    this.wrote = signal(null); // the operation that the hub has carried out last
  }

  become(status) {
    super.become(status);
    this.status.value = status;
  }

  /** Ask for an operation that changes something. */
  write(name, args, cid = newCid()) {
    const asked = this.call(name, args, cid);
    asked.then(() => (this.wrote.value = name), () => {});
    return asked;
  }
}
