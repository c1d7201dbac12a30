// A participant's connection to the hub: joins, resumes, calls, acknowledges. Runs in browsers and in
// Node 22; the page uses this same file.
//
//   out -> connecting -> ready -> waiting -> connecting -> ...
//                     \-> refused (a close code of 4500 or more: reconnecting would not help)
//
// Calls are repeated until answered, over any number of connections; writes carry a cid, so that the
// hub performs each once. Frames: docs/reference/protocol.md.

/** @import { Args, Card, Event, Hello, OperationInfo, Ready, Result, Signal } from "./operations.js" */

const VERSION = "hubbub.v1";
const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 10_000;
const ACK_AFTER_MS = 100;
const ACK_EVERY = 64;
const SILENCE_MS = 15_000; // without an answer there is reason for doubt
const PROBE_MS = 4000; // without an answer after that, the socket counts as dead

/** The hub refused a call: `code` for programs, `message` for people. */
export class CallError extends Error {
  /** @param {{code: string, message: string, temporary?: boolean, retry_after_s?: number | null, details?: Record<string, any>}} frame */
  constructor({ code, message, temporary = false, retry_after_s = null, details = {} }) {
    super(message);
    this.code = code;
    /** Whether the same call can succeed later. */
    this.temporary = temporary;
    /** Seconds until then. */
    this.retryAfter = retry_after_s;
    this.details = details;
  }
}

/** The connection has ended for good: `code` is the close code. */
export class Closed extends Error {
  /** @param {number} code @param {string} reason */
  constructor(code, reason) {
    super(reason || `closed with ${code}`);
    this.code = code;
  }
}

/** A new id for a write, so that repeating it does nothing twice. */
export function newCid() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * The client's status. `until`: when it reconnects (ms since 1970), for the `tries`th time; `code` and
 * `reason` are those with which the hub refused it.
 * @typedef {{state: "out" | "connecting" | "ready"} | {state: "waiting", until: number, tries: number}
 *   | {state: "refused", code: number, reason: string}} Status
 */
/**
 * Receives frames, in order. An event is acknowledged when `event` has returned, or when its promise is
 * fulfilled: if that fails, the event is delivered again.
 * @typedef {object} Listener
 * @property {(frame: Ready, hello: Hello) => void} [ready]  `resumed: false`: discard all state.
 * @property {(frame: Event) => unknown} [event]
 * @property {(frame: Signal) => void} [signal]
 * @property {(status: Status) => void} [status]
 */
/**
 * @typedef {object} ClientOptions
 * @property {"human" | "agent" | "service"} [kind]  Default: a human.
 * @property {boolean} [latest]  Start at the head of the log instead of the hub's cursor.
 * @property {boolean} [observe]  Receive the whole log instead of the participant's own messages (owners).
 * @property {boolean} [turns]  An agent that records its turns: a wake stays pending until its turn has ended.
 * @property {boolean} [heartbeat]  Check regularly that the hub is reachable.
 * @property {any} [Socket]  Replaces the platform's WebSocket.
 * @property {() => number} [random]  In [0, 1).
 */

export class Client {
  /**
   * @param {string} url  ws://host:port
   * @param {Listener} [listener]
   * @param {ClientOptions} [options]
   */
  constructor(url, listener = {}, { Socket = globalThis.WebSocket, random = Math.random, ...about } = {}) {
    if (!/^(ws|http)s?:\/\//.test(url)) throw new Error(`the address of a network is ws://host:port, not ${url}`);
    this.url = url;
    this.listener = listener;
    if (!Socket) throw new Error("there is no WebSocket here: use Node 22 or newer, or pass one as the option Socket");
    this.Socket = Socket;
    this.random = random;
    /** @type {ClientOptions} */
    this.about = { kind: "human", ...about };
    /** @type {Status["state"]} */
    this.state = "out";
    /** @type {Hello | null} */
    this.hello = null;
    /** @type {string | null} */
    this.me = null;
    /** @type {Map<string, OperationInfo>} */
    this.operations = new Map();
    this.calls = new Map(); // ref -> {text, resolve, reject}
    /** @type {Set<string>} */
    this.overRate = new Set(); // refs of calls over the rate limit, of which only the first is repeated
    this.described = new Map(); // hash of schemas -> promise of the operation with them
    this.nextRef = 1;
    this.tries = 0;
    /** Where a later connection resumes: everything up to there is done. @type {any} */
    this.cursor = null; // {epoch, seq, run}
    this.received = 0; // seq of the last event passed to the listener
    this.last = 0; // seq of the last event of this connection
    this.acked = 0;
    /** @type {Set<number>} */
    this.open = new Set(); // events being handled, in order
    /** @type {any} */
    this.partial = null; // the request for threads that `ready` left out
    /** @type {WebSocket | null} */
    this.socket = null;
    /** @type {any} */
    this.retryTimer = 0;
    /** @type {any} */
    this.ackTimer = 0;
    /** @type {any} */
    this.silenceTimer = 0;
    /** @type {any} */
    this.beat = 0;
  }

  /**
   * Join as `participant` and stay connected until `leave`.
   * @param {string} participant
   * @param {string | null} [token]
   * @param {Card | null} [card]  A new card, which others see.
   */
  join(participant, token = null, card = null) {
    this.leave();
    this.me = participant;
    this.token = token;
    this.card = card;
    this.forget();
    this.tries = 0;
    this.connect();
  }

  /** Handled events are acknowledged; unanswered calls fail. */
  leave() {
    if (this.state === "ready") this.acknowledge();
    this.drop();
    clearTimeout(this.retryTimer);
    this.become({ state: "out" });
    const left = [...this.calls.values()];
    this.calls.clear();
    this.overRate.clear();
    for (const call of left) call.reject(new Error("left"));
  }

  /**
   * Call an operation of the hub. Rejects with a CallError if it refuses.
   * @template {string} Name
   * @param {Name} name
   * @param {Args<Name>} [args]
   * @param {string} [cid]  For a write: repeating it with the same cid does nothing.
   * @returns {Promise<Result<Name>>}
   */
  call(name, args = /** @type {any} */ ({}), cid) {
    if (this.operations.get(name)?.permission !== "read") cid ??= newCid();
    const ref = String(this.nextRef++);
    return new Promise((resolve, reject) => {
      const text = JSON.stringify({ op: "call", ref, name, args, cid });
      this.checkSize(name, text);
      this.calls.set(ref, { text, resolve, reject });
      if (this.state === "ready") {
        this.send(text);
        this.expectAnswer();
      }
    });
  }

  /**
   * Send an ephemeral signal, such as typing. Lost while disconnected. Throws a CallError if it is too large.
   * @param {string} type
   * @param {string | null} thread_id
   * @param {unknown} [data]
   */
  signal(type, thread_id, data = null) {
    if (this.state !== "ready") return;
    const text = JSON.stringify({ op: "signal", type, thread_id, data });
    this.checkSize(`signal ${type}`, text);
    this.send(text);
  }

  /** The hub would close the connection because of a larger frame, again after each reconnection. */
  checkSize(what, text) {
    const most = this.hello?.limits?.frame_bytes;
    if (!most || text.length * 3 <= most) return;
    const size = new TextEncoder().encode(text).length;
    if (size <= most) return;
    throw new CallError({ code: "too_large", message: `${what}: ${size} bytes are too many, the hub accepts ${most}` });
  }

  /** Whether the hub has an operation. @param {string} operation */
  may(operation) {
    return this.operations.has(operation);
  }

  /**
   * An operation with the JSON Schemas of its input and output, which `ready` leaves out.
   * @param {string} name
   * @returns {Promise<OperationInfo | undefined>}  Undefined if the hub has none of that name.
   */
  async describe(name) {
    const known = this.operations.get(name);
    if (!known) return undefined;
    const key = known.schemas ?? name;
    if (!this.described.has(key)) {
      const asked = this.call("describe_operations", { names: [name] });
      this.described.set(key, asked);
      asked.catch(() => this.described.delete(key));
    }
    return (await this.described.get(key)).operations[0];
  }

  /** Check that the hub is reachable: without an answer in time (ms) the socket is dropped. */
  probe(within = PROBE_MS) {
    if (this.state !== "ready") return;
    const socket = this.socket;
    const timer = setTimeout(() => socket === this.socket && this.closed(4003, "no answer"), within);
    const answered = () => clearTimeout(timer);
    this.call("list_threads", { limit: 1 }).then(answered, answered);
  }

  /** Reconnect now instead of waiting. */
  retry() {
    if (this.state === "waiting") this.connect();
  }

  // Connecting ------------------------------------------------------------------------------

  /** @param {Status} status */
  become(status) {
    this.state = status.state;
    this.listener.status?.(status);
  }

  /** Discard state of another stream. */
  forget() {
    this.cursor = null;
    this.received = 0;
    this.open = new Set();
  }

  connect() {
    clearTimeout(this.retryTimer);
    this.drop();
    this.become({ state: "connecting" });
    const socket = (this.socket = new this.Socket(this.url));
    socket.onmessage = ({ data }) => socket === this.socket && this.take(JSON.parse(data));
    socket.onclose = ({ code, reason }) => socket === this.socket && this.closed(code, reason);
    // Without a listener, some versions of Node report no more than this.
    socket.onerror = () => socket === this.socket && this.closed(1006, "no connection");
    this.expectAnswer();
  }

  drop(code = 1000) {
    clearTimeout(this.ackTimer);
    clearTimeout(this.silenceTimer);
    clearInterval(this.beat);
    this.ackTimer = this.silenceTimer = this.beat = 0;
    const socket = this.socket;
    this.socket = null;
    this.partial = null;
    if (socket && socket.readyState < 2) socket.close(code);
  }

  /** @param {number} code @param {string} reason */
  closed(code, reason) {
    this.drop();
    if (code === 1007 || code === 1009 || (code >= 4500 && code < 5000)) {
      this.become({ state: "refused", code, reason: this.refusal ?? reason });
      return;
    }
    const wait = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** this.tries++) * (0.5 + this.random() / 2);
    // Before notifying listeners, which may leave.
    this.retryTimer = setTimeout(() => this.connect(), wait);
    this.become({ state: "waiting", until: Date.now() + wait, tries: this.tries });
  }

  identify() {
    const { kind, latest, observe, turns } = this.about;
    const frame = { op: "identify", version: VERSION, participant: this.me, kind };
    Object.assign(frame, latest && { latest }, observe && { observe }, turns && { turns });
    if (this.token) Object.assign(frame, { token: this.token });
    if (this.card) Object.assign(frame, { card: this.card });
    if (this.cursor?.epoch === this.hello?.epoch) {
      const received = this.received > this.cursor.seq ? { received: this.received } : {};
      Object.assign(frame, { cursor: { ...this.cursor, ...received } });
    }
    this.say(frame);
  }

  // Frames in -------------------------------------------------------------------------------

  /** @param {any} frame */
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
        return this.listener.signal?.(frame);
      case "result":
        if (this.partial) return this.completed(frame.value);
        return this.settle(frame.ref, (call) => call.resolve(frame.value));
      case "error":
        return this.failed(frame);
      case "reconnect":
        return this.closed(4006, "the hub is stopping");
    }
  }

  /** First fetch the threads that `ready` left out of a large network; other frames wait meanwhile. */
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

  /** @param {Ready} frame */
  joined(frame) {
    const hello = /** @type {Hello} */ (this.hello);
    const { epoch, run, heartbeat_s } = hello;
    // Resuming beyond the received events would hide a gap.
    if (this.cursor && (!frame.resumed || this.cursor.epoch !== epoch || frame.cursor > this.received)) {
      frame.resumed = false;
      this.forget();
    }
    if (!this.cursor) this.received = frame.cursor;
    this.cursor = { epoch, run, seq: this.cursor?.seq ?? frame.cursor };
    this.last = this.acked = frame.cursor;
    this.tries = 0;
    this.operations = new Map(frame.operations?.map((operation) => [operation.name, operation]));
    const socket = this.socket;
    this.listener.ready?.(frame, hello);
    if (socket !== this.socket) return; // left or reconnected meanwhile
    this.become({ state: "ready" });
    this.acknowledge();
    for (const ref of this.calls.keys()) this.repeat(ref);
    if (this.calls.size) this.expectAnswer();
    if (this.about.heartbeat && heartbeat_s) this.beat = setInterval(() => this.probe(), heartbeat_s * 1000);
  }

  /** @param {Event} frame */
  event(frame) {
    if (frame.prev !== this.last) {
      this.drop(4004); // a gap: resume from the received events
      return this.connect();
    }
    const known = frame.seq <= this.received; // it is already being handled since before the connection was lost
    const work = known ? null : /** @type {any} */ (this.listener.event?.(frame));
    this.last = frame.seq;
    if (!known) this.received = frame.seq;
    const { open } = this;
    if (work?.then) {
      open.add(frame.seq);
      work.then(() => open.delete(frame.seq) && open === this.open && this.done());
    }
    this.done();
  }

  /** Acknowledge everything before the first event still being handled. */
  done() {
    const [first = this.received + 1] = this.open;
    this.cursor.seq = first - 1;
    if (this.state !== "ready" || this.tellable <= this.acked) return;
    if (this.tellable - this.acked >= ACK_EVERY) this.acknowledge();
    else this.ackTimer ||= setTimeout(() => this.acknowledge(), ACK_AFTER_MS);
  }

  /** The seq that can be acknowledged: not beyond what the hub sent on this connection. */
  get tellable() {
    return Math.min(this.cursor.seq, this.last);
  }

  acknowledge() {
    clearTimeout(this.ackTimer);
    this.ackTimer = 0;
    this.acked = this.tellable;
    this.say({ op: "ack", seq: this.acked });
  }

  failed(frame) {
    if (this.partial && frame.ref) {
      this.drop(4004); // too many calls at once, for example: reconnect and repeat them
      return this.closed(4005, frame.message);
    }
    if (!frame.ref) {
      this.refusal = frame.message; // the reason if the hub closes the connection
      // It waits for another `identify`: a participant with a valid name, for example.
      if (this.state === "connecting" && frame.code === "bad_request") this.closed(4501, frame.message);
      return;
    }
    const call = this.calls.get(frame.ref);
    if (call && frame.temporary) {
      const wait = Math.max(0.2, frame.retry_after_s ?? 1) * 1000;
      if (frame.code === "rate_limited") this.overRate.add(frame.ref);
      setTimeout(() => this.repeat(frame.ref), wait);
      return;
    }
    this.settle(frame.ref, () => call.reject(new CallError(frame)));
  }

  /** Unless it has to wait: for the connection, with which all calls are repeated, or behind others. */
  repeat(ref) {
    const call = this.calls.get(ref);
    const [first = ref] = this.overRate;
    if (call && this.state === "ready" && (ref === first || !this.overRate.has(ref))) this.send(call.text);
  }

  settle(ref, how) {
    const call = this.calls.get(ref);
    if (!call) return;
    this.calls.delete(ref);
    if (this.overRate.delete(ref)) {
      const [next] = this.overRate;
      if (next) this.repeat(next);
    }
    if (!this.calls.size) {
      clearTimeout(this.silenceTimer);
      this.silenceTimer = 0;
    }
    how(call);
  }

  // Frames out ------------------------------------------------------------------------------

  /** @param {object} frame */
  say(frame) {
    this.send(JSON.stringify(frame));
  }

  /** @param {string} text */
  send(text) {
    if (this.socket?.readyState === 1) this.socket.send(text);
  }

  /** A socket can be dead without notice. */
  expectAnswer() {
    this.silenceTimer ||= setTimeout(() => this.silent(), SILENCE_MS);
  }

  /** No answer in time: the socket is dead, or a call takes long, while the hub answers others. */
  silent() {
    this.silenceTimer = 0;
    if (this.state === "ready") this.probe();
    else this.closed(4003, "no answer");
  }
}
