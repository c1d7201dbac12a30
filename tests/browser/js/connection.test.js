import { Client } from "/static/core/client.js";
import { watchConnection } from "/static/core/connection.js";
import { equal, eventually, test } from "./harness.js";

/** A window that can be hidden, and a client that notes what it is asked to do. */
function watched() {
  const target = new EventTarget();
  target.document = Object.assign(new EventTarget(), { hidden: false });
  const asked = [];
  const client = { retry: () => asked.push("retry"), probe: () => asked.push("probe") };
  const clock = { now: 1_000_000 };
  watchConnection(client, target, () => clock.now);
  const see = (hidden) => {
    target.document.hidden = hidden;
    target.document.dispatchEvent(new Event("visibilitychange"));
  };
  return { target, asked, clock, see };
}

test("a network that is back is tried at once", () => {
  const { target, asked } = watched();
  target.dispatchEvent(new Event("online"));
  equal(asked, ["retry"]);
});

test("a network that is lost makes one look", () => {
  const { target, asked } = watched();
  target.dispatchEvent(new Event("offline"));
  equal(asked, ["probe"]);
});

test("who comes back after a minute looks whether the hub is still there", () => {
  const { asked, clock, see } = watched();
  see(true);
  clock.now += 61_000;
  see(false);
  equal(asked, ["retry", "probe"]);
});

test("who comes back soon does not wait any longer, and that is all", () => {
  const { asked, clock, see } = watched();
  see(true);
  clock.now += 5000;
  see(false);
  equal(asked, ["retry"]);
});

/** A hub that says hello and ready, and answers calls if `answers`. */
function hub(answers) {
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
      const frame = JSON.parse(text);
      if (frame.op === "identify") this.tell({ op: "ready", cursor: 0, operations: [], participant: "ann" });
      if (frame.op === "call" && answers) this.tell({ op: "result", ref: frame.ref, value: {} });
    }
    close() {
      this.readyState = 3;
    }
  }
  const listener = { ready() {}, event() {}, signal() {} };
  return { client: new Client("ws://test", listener, { Socket }), opened };
}

test("a hub that answers a probe is kept", async () => {
  const { client, opened } = hub(true);
  client.join("ann");
  await eventually(() => client.status.value.state === "ready");
  client.probe(20);
  await eventually(() => client.calls.size === 0);
  await new Promise((resolve) => setTimeout(resolve, 40));
  equal(client.status.value.state, "ready");
  equal(opened.length, 1);
  client.leave();
});

test("a hub that does not is left, and joined anew", async () => {
  const { client, opened } = hub(false);
  client.join("ann");
  await eventually(() => client.status.value.state === "ready");
  client.probe(20);
  await eventually(() => opened.length === 2);
  client.leave();
});
