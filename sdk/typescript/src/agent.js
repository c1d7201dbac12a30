// Agents: a function that is called with each message that wakes it.
//
//     await serve("echo", (message) => `you said: ${message.content}`);
//
// Each wake is a turn that the hub records: it begins durably before the function is called, and
// stays pending until its end is recorded. After a crash the function is called again with the same
// message; the answers of its steps are given back, and what it had sent is not sent twice.
/** @import { Args, Card, Event, Message, OperationInfo, PendingWake, Ready, Result, Signal, Step, Wake } from "./operations.js" */
import { CallError, Client, Closed, newCid } from "./client.js";
import { reporter } from "./participant.js";

const SHOWN_AFTER_MS = 1000; // a quick turn makes no noise
const AWAY_MS = 300; // for telling the hub that turns are left
const PARTIAL_MS = 200; // between two signals of a turn
const MOST_PARTIAL = 8000; // characters of a text that is being written: the last ones

/**
 * What takes turns: what it returns is sent as the answer in the thread (a text or other JSON; null
 * and undefined: nothing), or reported to who has delegated the task.
 * @typedef {(message: Message, turn: Turn) => unknown} Handler
 */
/**
 * @typedef {object} AgentOptions
 * @property {string} [url]  ws://host:port; left out: what `hubbub up` says in HUBBUB_URL, or ws://127.0.0.1:4820
 * @property {string} [token]  Left out: the one in HUBBUB_TOKENS.
 * @property {Card} [card]  What others are told of the agent.
 * @property {number} [concurrency]  Threads in which it works at the same time; 4.
 * @property {AbortSignal} [signal]  Ends the agent in order; left out, SIGINT and SIGTERM do.
 * @property {() => void} [joined]  Called whenever it has joined.
 * @property {any} [Socket]  In place of the platform's own WebSocket.
 */

/**
 * Be an agent until `signal` ends it. Rejects with Closed when the hub closes for good: a token
 * that is not accepted, or another process that has taken its place.
 * @param {string} name
 * @param {Handler} handler
 * @param {AgentOptions} [options]
 * @returns {Promise<void>}
 */
export async function serve(name, handler, options = {}) {
  const env = globalThis.process?.env ?? {};
  const tokens = JSON.parse(env.HUBBUB_TOKENS || "{}");
  const agent = new Agent(handler, { url: env.HUBBUB_URL || "ws://127.0.0.1:4820", ...options });
  const over = options.signal ?? onSignals();
  if (over.aborted) return;
  await new Promise((resolve, reject) => {
    agent.refused = reject;
    over.addEventListener("abort", () => agent.leave().then(resolve, reject), { once: true });
    agent.client.join(name, options.token ?? tokens[name], options.card);
  });
}

/** Aborted when the process is asked to end. */
function onSignals() {
  const ending = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"]) globalThis.process?.once?.(name, () => ending.abort());
  return ending.signal;
}

class Agent {
  /** @param {Handler} handler @param {AgentOptions & {url: string}} options */
  constructor(handler, { url, concurrency = 4, Socket, joined = () => {} }) {
    this.handler = handler;
    this.concurrency = concurrency;
    this.life = newCid(); // of this process: the hub counts those that die in the same turn
    this.refused = (error) => {};
    /** @type {Map<string, Turn>} */
    this.turns = new Map(); // all that have not ended, by id, in order
    /** @type {Map<string, Ask>} */
    this.asks = new Map(); // that wait for an answer, by who is asked
    this.decided = signalled(); // by the hub: how an approval stands
    this.client = new Client(
      url,
      {
        ready: (frame) => (this.ready(frame), joined()),
        event: (frame) => this.event(frame),
        signal: (frame) => this.signal(frame),
        status: (status) => {
          report(status);
          if (status.state === "refused") this.lost(new Closed(status.code, status.reason));
        },
      },
      { kind: "agent", turns: true, heartbeat: true, ...(Socket && { Socket }) },
    );
    const report = reporter(this.client);
  }

  /** @param {Ready} frame */
  ready(frame) {
    const pending = new Set(frame.pending?.map(({ wake, started }) => started ?? wake.turn));
    for (const turn of this.turns.values()) {
      // The hub has ended it meanwhile, or the log is another one.
      if (!frame.resumed || !pending.has(turn.id)) this.stop(turn.id, "it ended while the agent was away");
    }
    for (const { message, wake, started } of frame.pending ?? []) this.wake(message, wake, started);
    this.decided.resolve(); // perhaps while there was no connection
    this.next();
  }

  /** A wake is pending at the hub until its turn has ended: the event can be acknowledged at once. @param {Event} event */
  event({ message, wake }) {
    if (wake) this.wake(message, wake);
    else this.asks.get(message.sender_id)?.take(message);
    this.next();
  }

  /** @param {Signal} frame */
  signal({ type, sender, data }) {
    if (sender !== "hub") return;
    if (type === "approval") this.decided.resolve();
    if (type !== "stop_turns") return;
    const { turns, reason, code } = /** @type {any} */ (data);
    for (const id of turns) this.stop(id, reason || code);
  }

  /**
   * @param {Message} message
   * @param {Wake} wake
   * @param {string | null} [started]  The turn that an earlier process has begun with the message.
   */
  wake(message, wake, started) {
    const id = started ?? wake.turn;
    const known = this.turns.get(id);
    if (known && !known.ended.aborted) {
      if (!known.running) known.messages.push(message);
      return;
    }
    if (message.mode === "interrupt") this.interrupt(message);
    this.turns.set(id, new Turn(this, id, message, Boolean(started)));
  }

  /** Somebody has ended a turn. @param {string} id @param {string} reason */
  stop(id, reason) {
    this.turns.get(id)?.stop(reason);
    if (!this.turns.get(id)?.running) this.turns.delete(id);
  }

  /** @param {Message} message */
  interrupt({ thread_id, sender_id }) {
    for (const turn of this.turns.values()) {
      if (turn.running && turn.thread === thread_id) turn.interrupt(`interrupted by ${sender_id}`);
    }
  }

  /**
   * Turns of one thread run one after the other, those of several beside each other. The answer to
   * a question is no turn of its own; what may answer what an earlier process has asked waits until
   * that is asked again.
   */
  next() {
    for (const turn of this.turns.values()) {
      const [message] = turn.messages;
      if (!turn.running && this.asks.get(message.sender_id)?.take(message)) this.settle(turn);
    }
    /** @type {Turn[]} */
    const resumed = []; // those before: a question comes before its answer
    const busy = new Set([...this.turns.values()].filter((turn) => turn.running).map((turn) => turn.thread));
    for (const turn of this.turns.values()) {
      if (busy.size >= this.concurrency) return;
      const [message] = turn.messages;
      const ask = this.asks.get(message.sender_id);
      const early = (ask && !ask.asked) || resumed.some((other) => other.mayHaveAsked(message));
      if (turn.resumed) resumed.push(turn);
      if (busy.has(turn.thread) || early) continue;
      busy.add(turn.thread);
      turn.running = true;
      this.run(turn);
    }
  }

  /** @param {Turn} turn */
  run(turn) {
    return this.ending(turn, turn.run(this.handler));
  }

  /** Its message was waited for: it is on record, and the handler is not called. @param {Turn} turn */
  settle(turn) {
    turn.running = true;
    const end = { id: turn.id, outcome: /** @type {const} */ ("finished"), reason: "awaited by another turn" };
    return this.ending(turn, turn.begin().then(() => this.client.call("end_turn", { end })));
  }

  /** @param {Turn} turn @param {Promise<unknown>} work */
  async ending(turn, work) {
    try {
      await work;
    } catch (error) {
      // Left, or ended by somebody else: there is nothing to record.
      if (error instanceof CallError) console.error(`${turn.id}: ${error.message}`);
    } finally {
      if (this.turns.get(turn.id) === turn) this.turns.delete(turn.id);
      this.next();
    }
  }

  /** The hub is told that what runs is cut off in order, and not by a death. */
  async leave() {
    const told = [...this.turns.values()].filter((turn) => turn.running).map((turn) => turn.leave());
    const late = new Promise((resolve) => setTimeout(resolve, AWAY_MS));
    await Promise.race([Promise.allSettled(told), late]);
    this.lost();
  }

  lost(error) {
    const turns = [...this.turns.values()];
    this.turns.clear(); // none of them begins any more
    for (const turn of turns) turn.stop("the agent has left");
    this.client.leave();
    if (error) this.refused(error);
  }
}

/** A promise that others resolve; `next` is the one after that. */
function signalled() {
  const own = { /** @type {Promise<void>} */ next: Promise.resolve(), resolve: () => {} };
  const renew = () => {
    own.next = new Promise((resolve) => {
      own.resolve = () => (renew(), resolve());
    });
  };
  renew();
  return own;
}

/** A question, until its answer is there. */
class Ask {
  constructor() {
    /** The question as the log has it. @type {Message | null} */
    this.asked = null;
    /** @type {(message: Message) => void} */
    this.resolve = () => {};
    /** @type {Promise<Message>} */
    this.answer = new Promise((resolve) => (this.resolve = resolve));
    this.done = false;
  }

  /** Whether a message is the answer; then it is handed over. @param {Message} message */
  take(message) {
    const { asked } = this;
    if (this.done || !asked || message.seq <= asked.seq || !answers(message, asked)) return false;
    this.done = true;
    this.resolve(message);
    return true;
  }
}

/**
 * It quotes the question, stands under it, or is caused by it. People name no cause: what they say
 * next in the thread is their answer.
 * @param {Message} message
 * @param {Message} asked
 */
function answers(message, asked) {
  if (message.quote) return message.quote.message_id === asked.id;
  const person = message.sender_kind === "human" || message.sent_by;
  if (person && !message.cause_id && !message.reply_to) return message.thread_id === asked.thread_id;
  const causes = [asked.id, `${message.sender_id}-${asked.id}`];
  return message.reply_to === asked.id || causes.includes(message.cause_id ?? "");
}

/** The request that a message makes, or says more about: the id to report with. @param {Message} message */
function taskOf({ id, request }) {
  return request && ["task", "reply"].includes(request.kind) ? request.id || id : null;
}

/** A turn of an agent: what its handler works with. */
export class Turn {
  /** @param {Agent} agent @param {string} id @param {Message} message @param {boolean} resumed */
  constructor(agent, id, message, resumed) {
    this.agent = agent;
    this.client = agent.client;
    /** The id that the hub's wake gave it. */
    this.id = id;
    /** Of the thread in which the agent was woken. */
    this.thread = message.thread_id;
    /** What it answers, oldest first: one message, or what an earlier process had taken together. */
    this.messages = [message];
    /** What an earlier process had recorded. @type {Step[]} */
    this.earlier = [];
    this.running = false;
    this.resumed = resumed; // an earlier process had begun it
    /** @type {Message[] | null} */
    this.sent = null; // by that process, and not sent again so far; null: not known yet
    this.steps = 0;
    this.writes = 0;
    this.approvals = 0;
    this.began = 0;
    /** @type {object[]} */
    this.calls = []; // of the handler, not yet recorded
    this.controller = new AbortController();
    this.interrupted = "";
  }

  /** Aborted when somebody has ended the turn: give it to `fetch` and the like. @type {AbortSignal} */
  get ended() {
    return this.controller.signal;
  }

  /**
   * Call an operation of the hub or of a mod, as part of the turn: a write that an earlier process
   * has made counts as made, and its first result is given. Rejects with a CallError.
   * @template {string} Name
   * @param {Name} name
   * @param {Args<Name>} [args]
   * @returns {Promise<Result<Name>>}
   */
  async call(name, args = /** @type {any} */ ({})) {
    if (this.client.operations.get(name)?.permission === "read") return this.client.call(name, args);
    const number = this.writes++; // before anything is awaited: several calls may be under way
    const known = /** @type {any} */ ((await this.client.describe(name))?.input_schema)?.properties ?? {};
    const filled = { ...args };
    if ("cause" in known) Object.assign(filled, { cause: this.id });
    if ("untrusted" in known && this.messages.some((each) => each.untrusted)) Object.assign(filled, { untrusted: true });
    this.ended.throwIfAborted();
    const cid = `${this.id.slice(-32)}:${number}`; // its end has the message's number
    const value = await this.client.call(name, filled, cid).catch((error) => {
      const { first } = error.details ?? {}; // what was done then counts
      if (error.code !== "cid_conflict" || !first) throw error;
      return first;
    });
    this.calls.push({ id: cid, name, arguments: args, result: value?.id ?? JSON.stringify(value ?? null) });
    return value;
  }

  /** Say something in the thread of the turn: a text or other JSON. @param {unknown} content */
  say(content) {
    if (typeof content === "string") return this.call("send_text_message", { to: this.thread, text: content });
    return this.call("send_message", { to: this.thread, content: /** @type {any} */ (content) });
  }

  /**
   * Ask another agent or a person in a direct message, and wait for the answer, which wakes nothing
   * then. Rejects when the turn is ended, with a CallError where the hub refuses, and with a
   * TimeoutError after `within` seconds. `to` a task that the turn works on asks who has delegated it.
   * @param {string | Message} to
   * @param {string} text
   * @param {number} [within]
   * @returns {Promise<Message>}
   */
  async ask(to, text, within = 300) {
    const about = typeof to === "string" ? null : taskOf(to) ?? to.id;
    if (typeof to !== "string") to = to.sender_id;
    const { asks } = this.agent;
    while (asks.has(to)) await Promise.race([asks.get(to)?.answer, rejected(this.ended)]);
    const ask = new Ask();
    asks.set(to, ask);
    const late = AbortSignal.timeout(within * 1000);
    try {
      const sent = about
        ? await this.call("report", { request: about, status: "question", text, awaits: true })
        : await this.call("send_text_message", { to, text, awaits: true });
      const code = sent.not_woken?.[to];
      if (code) throw new CallError({ code, message: `${to} is kept from answering: ${code}` });
      ask.asked = sent.message;
      if (this.resumed) await this.lookBack(ask, sent.message);
      this.sent = this.sent?.filter(({ id }) => id !== sent.id) ?? null;
      this.agent.next();
      return await Promise.race([ask.answer, rejected(this.ended), rejected(late)]);
    } finally {
      asks.delete(to);
      if (ask.asked && !ask.done) this.client.call("stop_waiting", { message: ask.asked.id }).catch(() => {});
      ask.resolve(/** @type {any} */ (null)); // who waits to ask the same participant goes on
      this.agent.next();
    }
  }

  /** Whether a message may answer what an earlier process has asked. @param {Message} message */
  mayHaveAsked(message) {
    return !this.sent || this.sent.some((asked) => answers(message, asked));
  }

  /** The answer may have come to an earlier process. @param {Ask} ask @param {Message} asked */
  async lookBack(ask, asked) {
    const { messages } = await this.client.call("read_thread", { thread: asked.thread_id });
    const answer = messages.find((message) => message.sender_id !== asked.sender_id && ask.take(message));
    const turn = [...this.agent.turns.values()].find((each) => each.messages[0].id === answer?.id);
    if (turn && !turn.running) this.agent.settle(turn);
  }

  /**
   * Ask people whether something may be done, and wait: gives the arguments to do it with, which
   * who has decided may have changed. Rejects with a CallError whose code is `denied`, `expired` or
   * `cancelled`; or `started`: an earlier process had the approval and may have done it.
   * @param {string} tool
   * @param {Record<string, any>} args
   * @param {{description?: string, reason?: string, schema?: Record<string, any>}} [about]
   * @returns {Promise<Record<string, any>>}
   */
  async confirm(tool, args, about = {}) {
    const asked = { turn: this.id, call: `${this.steps + 1}:${this.approvals++}`, tool, arguments: args, ...about };
    for (;;) {
      const decided = this.agent.decided.next; // before it is asked: the word may come at once
      const { id, state, verdict, final } = await this.client.call("request_approval", asked);
      if (state === "approved") {
        await this.client.call("start_approved", { id });
        return final ?? args;
      }
      if (state !== "pending") throw new CallError({ code: state, message: verdict || `${tool}: ${state}` });
      await Promise.race([decided, rejected(this.ended)]);
    }
  }

  /** Show people what is being written: the whole text so far, as often as there is more. @param {string} text */
  partial(text) {
    this.written = text.length > MOST_PARTIAL ? `…${text.slice(-MOST_PARTIAL)}` : text;
    this.writing ??= setTimeout(() => {
      this.writing = undefined;
      this.client.signal("partial", this.thread, { turn: this.id, step: this.steps || 1, text: this.written });
    }, PARTIAL_MS);
  }

  /**
   * A step of the turn, which is recorded: `work` asks a model, for example, and gives what the
   * record shall have of it (`text`, `tokens_in`, `tokens_out`, `cost_usd`, `calls`, ...). If an
   * earlier process has recorded this step, its record is given and `work` is not called.
   * @param {() => Promise<Partial<Step>> | Partial<Step>} work
   * @returns {Promise<Step>}
   */
  async step(work) {
    const n = ++this.steps;
    const earlier = this.earlier.find((step) => step.n === n);
    if (earlier) return earlier;
    const began = performance.now();
    const told = await work();
    this.ended.throwIfAborted();
    const step = { at_ms: began - this.began, duration_ms: performance.now() - began, ...told, n };
    await this.client.call("record_step", { turn: this.id, step });
    return step;
  }

  async begin() {
    const { id, thread: thread_id, messages } = this;
    this.began = performance.now();
    const start = { id, thread_id, messages: messages.map((message) => message.id) };
    this.earlier = (await this.client.call("begin_turn", { start, life: this.agent.life })).steps ?? [];
    if (!this.resumed) return;
    const { sent = [] } = await this.client.call("read_turn", { id });
    this.sent = await Promise.all(sent.map((each) => this.client.call("read_message", { id: each })));
    this.agent.next();
  }

  /** @param {Handler} handler */
  async run(handler) {
    await this.begin();
    const { id } = this;
    const showing = setTimeout(() => this.show("thinking"), SHOWN_AFTER_MS);
    /** @type {"finished" | "cancelled" | "handler_error"} */
    let outcome = "finished";
    let reason = "";
    try {
      await Promise.race([this.handle(handler), rejected(this.ended)]);
    } catch (/** @type {any} */ error) {
      if (this.ended.aborted && !this.interrupted) throw this.ended.reason;
      outcome = this.interrupted ? "cancelled" : "handler_error";
      reason = this.interrupted || String(error?.message ?? error);
      if (!this.interrupted) console.error(error);
    } finally {
      clearTimeout(showing);
      clearTimeout(this.writing);
      if (this.shown) this.show("idle");
    }
    await this.record();
    await this.client.call("end_turn", { end: { id, outcome, reason } });
  }

  /** @param {Handler} handler */
  async handle(handler) {
    this.ended.throwIfAborted();
    const message = /** @type {Message} */ (this.messages.at(-1));
    const answer = await handler(message, this);
    if (answer === null || answer === undefined || answer === "") return;
    const request = taskOf(message);
    if (!request) return void (await this.say(answer));
    const text = typeof answer === "string" ? answer : JSON.stringify(answer);
    await this.call("report", { request, status: "result", text });
  }

  /** What the handler has called itself is a step, too. */
  async record() {
    const { calls } = this;
    if (!calls.length || this.earlier.some((step) => step.n === this.steps + 1)) return;
    this.calls = [];
    await this.client.call("record_step", { turn: this.id, step: { n: ++this.steps, calls } });
  }

  show(state) {
    this.shown = true;
    this.client.signal("activity", this.thread, { state, turn: this.id, step: this.steps + 1 });
  }

  /** Somebody has ended it: there is nothing to record. */
  stop(reason) {
    this.controller.abort(new Error(reason));
  }

  /** A person's next message ends it. */
  interrupt(reason) {
    this.interrupted = reason;
    this.controller.abort(new Error(reason));
  }

  leave() {
    return this.client.call("leave_turn", { turn: this.id, life: this.agent.life });
  }
}

/** @param {AbortSignal} signal @returns {Promise<never>} */
function rejected(signal) {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}
