import { after, equal, eventually, test } from "./harness.js";
import { Client } from "/static/core/client.js";
import { watchConnection } from "/static/core/connection.js";

/** What a client is asked to do when its window lives through this. */
function asked(happens) {
  const target = new EventTarget();
  target.document = Object.assign(new EventTarget(), { hidden: false });
  const [clock, asked] = [{ now: 1_000_000 }, []];
  const client = { retry: () => asked.push("retry"), probe: () => asked.push("probe") };
  watchConnection(client, target, () => clock.now);
  const hides = (hidden) => {
    target.document.hidden = hidden;
    target.document.dispatchEvent(new Event("visibilitychange"));
  };
  happens({ tells: (name) => target.dispatchEvent(new Event(name)), hides, clock });
  return asked;
}

/** Away for so long. */
const away = (ms) => ({ hides, clock }) => {
  hides(true);
  clock.now += ms;
  hides(false);
};

test("a network that is back and a person who is back are reasons to try, and to look", () => {
  equal(asked(({ tells }) => tells("online")), ["retry"]);
  equal(asked(({ tells }) => tells("offline")), ["probe"]);
  equal(asked(away(61_000)), ["retry", "probe"], "after a minute the hub may be gone");
  equal(asked(away(5000)), ["retry"]);
});

test("a hub that answers a probe is kept, one that does not is left and joined anew", async () => {
  for (const answers of [true, false]) {
    const opened = [];
    class Socket {
      readyState = 1;
      constructor() {
        opened.push(this);
        queueMicrotask(() => this.tell({ op: "hello", epoch: "e", network: "n", limits: {} }));
      }
      tell(frame) {
        this.onmessage?.({ data: JSON.stringify(frame) });
      }
      send(text) {
        const { op, ref } = JSON.parse(text);
        if (op === "identify") this.tell({ op: "ready", cursor: 0, operations: [], participant: "ann" });
        if (op === "call" && answers) this.tell({ op: "result", ref, value: {} });
      }
      close() {
        this.readyState = 3;
      }
    }
    const client = new Client("ws://test", { ready() {}, event() {}, signal() {} }, { Socket });
    after(() => client.leave());
    client.join("ann");
    await eventually(() => client.status.value.state === "ready");
    client.probe(20);
    if (!answers) await eventually(() => opened.length === 2);
    else await new Promise((then) => setTimeout(then, 40)); // twice as long as a probe may take
    equal(opened.length, answers ? 1 : 2);
  }
});
