// A participant's connection to the hub: joins, resumes, calls, acknowledges.
//
//   out -> connecting -> ready -> waiting -> connecting -> ...
//                     \-> refused (a close code of 4500 and more: coming back would not help)
//
// Writes carry a cid and are repeated until they are answered, over as many connections as it
// takes; the hub does each once. Reads are repeated likewise. Frames: docs/reference/protocol.md.
import { signal } from "../vendor/signals.js";
import { newCid } from "./ids.js";

const VERSION = "hubbub.v1";
const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 10_000;
const ACK_AFTER_MS = 100;
const ACK_EVERY = 64;
const SILENCE_MS = 15_000; // without an answer the socket is taken for dead
const PROBE_MS = 4000; // the same, when there is reason for doubt

/** The hub refused a call: `code` for programs, `message` for people. */
export class CallError extends Error {
  constructor({ code, message, temporary = false, retry_after_s = null, details = {} }) {
    super(message);
    Object.assign(this, { code, temporary, retryAfter: retry_after_s, details });
  }
}

export class Client {
  /**
   * @param {string} url  ws://host:port
   * @param {{ready, event, signal}} listener  Told of frames, in order.
   * @param {boolean} [options.observe]  Get the whole log rather than one's own messages (owners).
   */
  constructor(url, listener, { observe = false, Socket = WebSocket, random = Math.random } = {}) {
    Object.assign(this, { url, listener, observe, Socket, random });
    this.status = signal({ state: "out" });
    this.wrote = signal(null); // the operation that the hub has carried out last
    this.hello = null;
    this.me = null;
    this.operations = new Map();
    this.calls = new Map(); // ref -> {frame, resolve, reject, write}
    this.nextRef = 1;
    this.cursor = null; // {epoch, seq}: what this page has
    this.acked = 0;
    this.tries = 0;
    this.socket = null;
    this.retryTimer = this.ackTimer = this.silenceTimer = 0;
  }

  /** Join as `participant`, and stay until `leave`. `card`: a new one, what others see of oneself. */
  join(participant, token = null, card = null) {
    this.leave();
    this.me = participant;
    this.token = token;
    this.card = card;
    this.cursor = null;
    this.tries = 0;
    this.connect();
  }

  leave() {
    this.drop();
    clearTimeout(this.retryTimer);
    for (const call of this.calls.values()) call.reject(new Error("left"));
    this.calls.clear();
    this.status.value = { state: "out" };
  }

  /** Ask the hub. Resolves to the operation's value; rejects with a CallError if it is refused. */
  call(name, args = {}) {
    return this.ask({ name, args });
  }

  /** The same for operations that write: repeated until answered, done once. */
  write(name, args, cid = newCid()) {
    const asked = this.ask({ name, args, cid });
    asked.then(() => (this.wrote.value = name), () => {});
    return asked;
  }

  /** Something ephemeral: typing, for example. Lost when nobody is connected. */
  signal(type, thread_id, data = null) {
    if (this.status.value.state === "ready") this.say({ op: "signal", type, thread_id, data });
  }

  may(operation) {
    return this.operations.has(operation);
  }

  /** Look whether the hub is still there: without an answer in time (ms) the socket is given up. */
  probe(within = PROBE_MS) {
    if (this.status.value.state !== "ready") return;
    const socket = this.socket;
    const timer = setTimeout(() => socket === this.socket && this.closed(4003, "no answer"), within);
    const answered = () => clearTimeout(timer);
    this.call("list_threads", { limit: 1 }).then(answered, answered);
  }

  /** Do not wait any longer: try to connect now. */
  retry() {
    if (this.status.value.state === "waiting") this.connect();
  }

  // Connecting ------------------------------------------------------------------------------

  connect() {
    clearTimeout(this.retryTimer);
    this.drop();
    this.status.value = { state: "connecting" };
    const socket = (this.socket = new this.Socket(this.url));
    socket.onmessage = ({ data }) => socket === this.socket && this.take(JSON.parse(data));
    socket.onclose = ({ code, reason }) => socket === this.socket && this.closed(code, reason);
    this.expectAnswer();
  }

  drop(code = 1000) {
    clearTimeout(this.ackTimer);
    clearTimeout(this.silenceTimer);
    this.ackTimer = this.silenceTimer = 0;
    const socket = this.socket;
    this.socket = null;
    this.partial = null;
    if (socket && socket.readyState < 2) socket.close(code);
  }

  closed(code, reason) {
    this.drop();
    if (code >= 4500 && code < 5000) {
      this.status.value = { state: "refused", code, reason: this.refusal ?? reason };
      return;
    }
    const wait = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** this.tries++) * (0.5 + this.random() / 2);
    this.status.value = { state: "waiting", until: Date.now() + wait, tries: this.tries };
    this.retryTimer = setTimeout(() => this.connect(), wait);
  }

  identify() {
    const frame = {
      op: "identify", version: VERSION, participant: this.me, kind: "human", latest: true,
    };
    if (this.observe) frame.observe = true;
    if (this.token) frame.token = this.token;
    if (this.card) frame.card = this.card;
    if (this.cursor?.epoch === this.hello.epoch) frame.cursor = this.cursor;
    this.say(frame);
  }

  // Frames in -------------------------------------------------------------------------------

  take(frame) {
    if (this.partial && frame.ref !== this.partial.ref) return this.partial.early.push(frame);
    clearTimeout(this.silenceTimer);
    this.silenceTimer = 0;
    if (this.calls.size) this.expectAnswer();
    switch (frame.op) {
      case "hello":
        this.hello = frame;
        this.refusal = null;
        return this.identify();
      case "ready":
        return frame.left_out?.length ? this.complete(frame) : this.joined(frame);
      case "event":
        return this.event(frame);
      case "signal":
        return this.listener.signal(frame);
      case "result":
        if (this.partial) return this.completed(frame.value);
        return this.settle(frame.ref, (call) => call.resolve(frame.value));
      case "error":
        return this.failed(frame);
      case "reconnect":
        return this.closed(4006, "the hub is stopping");
    }
  }

  /** What `ready` left out of a large network is asked for first; what comes meanwhile waits. */
  complete(frame) {
    this.partial = { ref: "ready", frame, left: [...frame.left_out], early: [] };
    this.askRest({});
  }

  askRest(args) {
    const { ref, left } = this.partial;
    this.say({ op: "call", ref, name: `list_${left[0]}`, args });
    this.expectAnswer();
  }

  completed(value) {
    const { frame, left, early } = this.partial;
    const what = left[0];
    frame[what] = [...frame[what], ...value[what]];
    if (value.more) return this.askRest({ after: frame[what].at(-1).id });
    left.shift();
    if (left.length) return this.askRest({});
    const socket = this.socket;
    this.partial = null;
    this.joined(frame);
    for (const later of early) if (socket === this.socket) this.take(later);
  }

  joined(frame) {
    this.tries = 0;
    this.cursor = { epoch: this.hello.epoch, seq: frame.cursor, run: this.hello.run };
    this.acked = frame.cursor;
    this.operations = new Map(frame.operations.map((operation) => [operation.name, operation]));
    this.listener.ready(frame, this.hello);
    this.status.value = { state: "ready" };
    this.acknowledge();
    for (const call of this.calls.values()) this.say(call.frame);
    if (this.calls.size) this.expectAnswer();
  }

  event(frame) {
    if (frame.prev !== this.cursor.seq) {
      this.drop(4004); // something is missing: resume from what is here
      return this.connect();
    }
    this.listener.event(frame);
    this.cursor.seq = frame.seq;
    if (frame.seq - this.acked >= ACK_EVERY) this.acknowledge();
    else this.ackTimer ||= setTimeout(() => this.acknowledge(), ACK_AFTER_MS);
  }

  acknowledge() {
    clearTimeout(this.ackTimer);
    this.ackTimer = 0;
    this.acked = this.cursor.seq;
    this.say({ op: "ack", seq: this.acked });
  }

  failed(frame) {
    if (this.partial && frame.ref) {
      this.drop(4004); // too many calls at once, for example: come back and ask again
      return this.closed(4005, frame.message);
    }
    if (!frame.ref) {
      this.refusal = frame.message; // the reason why the hub closes, if it does
      return;
    }
    const call = this.calls.get(frame.ref);
    if (call && frame.temporary) {
      const wait = Math.max(0.2, frame.retry_after_s ?? 1) * 1000;
      // If it is not joined then, it says all calls again as soon as it is.
      const again = () => this.calls.has(frame.ref) && this.status.peek().state === "ready";
      setTimeout(() => again() && this.say(call.frame), wait);
      return;
    }
    this.settle(frame.ref, () => call.reject(new CallError(frame)));
  }

  settle(ref, how) {
    const call = this.calls.get(ref);
    if (!call) return;
    this.calls.delete(ref);
    if (!this.calls.size) {
      clearTimeout(this.silenceTimer);
      this.silenceTimer = 0;
    }
    how(call);
  }

  // Frames out ------------------------------------------------------------------------------

  ask(call) {
    const ref = String(this.nextRef++);
    const frame = { op: "call", ref, ...call };
    return new Promise((resolve, reject) => {
      this.calls.set(ref, { frame, resolve, reject });
      if (this.status.value.state === "ready") {
        this.say(frame);
        this.expectAnswer();
      }
    });
  }

  say(frame) {
    if (this.socket?.readyState === 1) this.socket.send(JSON.stringify(frame));
  }

  /** A socket can be dead without anybody telling: no answer in time means it is. */
  expectAnswer() {
    if (this.silenceTimer) return;
    this.silenceTimer = setTimeout(() => this.closed(4003, "no answer"), SILENCE_MS);
  }
}
