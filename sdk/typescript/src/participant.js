// Participants that read what happens in a loop.
/** @import { Args, Card, Event, Ready, Result } from "./operations.js" */
import { Client, Closed } from "./client.js";

/** Says on the console when the connection is lost, once, and when it is back. @param {Client} client */
export function reporter(client) {
  let away = false;
  /** @param {import("./client.js").Status} status */
  return ({ state }) => {
    if (state === "waiting" && !away) console.warn(`${client.me}: no connection to ${client.url}, trying again`);
    if (state === "ready" && away) console.warn(`${client.me}: connected again`);
    away = state !== "ready" && (away || state === "waiting");
  };
}

/** A client whose events are read in a loop. */
export class Participant extends Client {
  /** @param {string} url @param {import("./client.js").ClientOptions} [options] */
  constructor(url, options) {
    super(url, {}, { heartbeat: true, ...options });
    /** @type {{frame: Event, done: (value?: unknown) => void}[]} */
    this.waiting = [];
    /** @type {(value?: unknown) => void} */
    this.news = () => {};
    /** Acknowledges the event that was read last. @type {(value?: unknown) => void} */
    this.handled = () => {};
    /** @type {Ready | null} */
    this.ready = null;
    /** @type {Error | null} */
    this.end = null;
    const report = reporter(this);
    this.listener = {
      ready: (frame) => {
        if (!frame.resumed) this.waiting = []; // of a log that is no more
        this.ready = frame;
      },
      event: (frame) => new Promise((done) => this.waiting.push({ frame, done }) && this.news()),
      status: (status) => {
        report(status);
        if (status.state === "refused") {
          this.end = new Closed(status.code, status.reason);
          for (const { reject } of this.calls.values()) reject(this.end);
          this.calls.clear();
        }
        this.news();
      },
    };
  }

  /**
   * As `Client.call`; rejects with Closed or "left" when no connection will bring an answer any more.
   * @template {string} Name
   * @param {Name} name
   * @param {Args<Name>} [args]
   * @param {string} [cid]
   * @returns {Promise<Result<Name>>}
   */
  call(name, args, cid) {
    if (this.end) return Promise.reject(this.end);
    return this.state === "out" ? Promise.reject(new Error("left")) : super.call(name, args, cid);
  }

  /**
   * What happens, in order, for one reader; ends when the participant leaves, and throws Closed when
   * the hub closes for good. Asking for the next event acknowledges the one before: a program that
   * dies over an event, or leaves with it, is given it again by the hub.
   */
  async *events() {
    for (;;) {
      this.handled(); // also if it was read in a loop before this one
      const next = this.waiting.shift();
      if (next) {
        this.handled = next.done;
        yield next.frame;
      } else if (this.state === "out" || this.end) {
        if (this.end) throw this.end;
        return;
      } else {
        await new Promise((news) => (this.news = news));
      }
    }
  }
}

/**
 * Join a network; resolves when the hub has let the participant in, and rejects with Closed if it
 * refuses. A lost connection is taken up again by itself, until `leave()`, as is the first one: the
 * console says so.
 * @param {string} url  ws://host:port
 * @param {string} participant
 * @param {import("./client.js").ClientOptions & {token?: string, card?: Card}} [options]
 */
export async function join(url, participant, { token, card, ...options } = {}) {
  const client = new Participant(url, options);
  client.join(participant, token, card);
  while (client.state !== "ready") {
    await new Promise((news) => (client.news = news));
    if (client.end) throw client.end;
  }
  return client;
}
