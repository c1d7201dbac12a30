// The page's connection to the hub: the client of sdk/typescript, with signals for its status.
import { signal } from "../vendor/signals.js";
import { Client as Connection, Closed, newCid } from "../sdk/client.js";

export { CallError, Closed, newCid } from "../sdk/client.js";

export class Client extends Connection {
  constructor(url, listener, options = {}) {
    super(url, listener, { latest: true, ...options });
    this.status = signal({ state: "out" });
    this.wrote = signal(null); // the latest operation that the hub carried out
    this.end = null; // Closed, once no connection will bring an answer any more
  }

  become(status) {
    super.become(status);
    this.end = status.state === "refused" ? new Closed(status.code, status.reason) : null;
    if (this.end) {
      for (const { reject } of this.calls.values()) reject(this.end);
      this.calls.clear();
    }
    this.status.value = status;
  }

  /** As in the SDK; rejects with Closed if the hub has refused the participant. */
  call(name, args, cid) {
    return this.end ? Promise.reject(this.end) : super.call(name, args, cid);
  }

  /** Call an operation that changes state. */
  write(name, args, cid = newCid()) {
    const asked = this.call(name, args, cid);
    asked.then(() => (this.wrote.value = name), () => {});
    return asked;
  }
}
