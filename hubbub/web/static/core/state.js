// The page's model of the network: the hub's frames go in, signals come out. Applying the events after
// a `ready` gives the same state as a later `ready`.
import { batch, computed, signal } from "../vendor/signals.js";
import { Control } from "./control.js";
import { parentOf, rootOf, titleOf } from "./ids.js";
import { agentOf, turnOf } from "./messages.js";
import { called } from "./names.js";
import { Thread } from "./thread.js";

const FLOW = 400; // messages kept for the network picture

export class State {
  constructor(now = Date.now) {
    this.now = now;
    this.me = signal(null);
    this.network = signal("");
    this.epoch = signal(null); // epoch of the log
    this.owner = signal(false);
    this.head = signal(0);
    this.participants = signal(new Map()); // id -> {id, kind, present, card}
    this.channels = signal(new Map()); // name -> {name, description, members, joined}
    this.threads = signal(new Map()); // id -> Thread; a new Map when one is added
    this.activities = signal(new Map()); // agent -> Map thread -> {state, tool, turn, since}
    this.moving = signal(false); // the network is moving between two hubs; the gateway keeps the socket
    this.busy = signal(new Set()); // agents working in any thread
    this.partials = signal(new Map()); // turn -> {turn, sender, thread, step, text, at}: partial messages
    this.typing = signal(new Map()); // thread -> Map person -> until
    this.delivered = signal(new Map()); // participant -> seq of the last delivered event
    this.flow = signal([]); // the latest messages: {seq, sender, thread, to, at, cause}
    this.labels = signal(new Map()); // thread -> {title, icon, note, choice}: labels, set by features
    this.arrived = signal(null); // the latest incoming message
    this.control = new Control(this); // stops, takeovers, approvals

    this.called = computed(() => called(this.participants.value.values()));
    /** Number of names that a text can mention. */
    this.names = computed(() => this.participants.value.size + this.channels.value.size);
    this.byActivity = computed(() =>
      [...this.threads.value.values()].sort((a, b) => b.lastSeq.value - a.lastSeq.value),
    );
    this.unread = computed(() => sum(this.threads.value.values(), (t) => t.unread.value));
    this.unreadMentions = computed(() =>
      sum(this.threads.value.values(), (t) => t.unreadMentions.value),
    );
  }

  /** The thread, created if it is unknown. */
  thread(id) {
    const known = this.threads.peek().get(id);
    if (known) return known;
    const made = new Thread(id);
    this.threads.value = new Map(this.threads.peek()).set(id, made);
    return made;
  }

  /** The message as it is now; it may have been amended since it was loaded. */
  current(message) {
    return this.threads.value.get(message.thread_id)?.current(message) ?? message;
  }

  participant(id) {
    return this.participants.value.get(id) ?? null;
  }

  /** A participant's name. */
  nameOf(id) {
    return this.called.value.get(id) ?? id;
  }

  /** The title of a thread, as seen by the reader. */
  titleOf(thread, reader = this.me.value) {
    return titleOf(thread, reader, (id) => this.nameOf(id));
  }

  /** Whether the reader is a member of a thread; of others they can at most read the history. */
  takesPart(id) {
    const root = rootOf(id);
    const [kind, ...names] = root.split(".");
    if (kind === "dm") return names.includes(this.me.value);
    return kind !== "channel" || (this.channels.value.get(names[0])?.joined ?? false);
  }

  /** The reader's choice for a thread or its parent: "followed", "muted" or null. */
  choiceIn(id) {
    const own = this.labels.value.get(id)?.choice;
    const up = parentOf(id);
    return own ?? (up === null ? null : this.choiceIn(up));
  }

  /** Reply threads of `thread`, by the seq of the message they reply to. */
  repliesIn(thread) {
    const found = new Map();
    for (const each of this.threads.value.values()) {
      if (each.parent === thread && each.head.value) found.set(each.repliesTo, each);
    }
    return found;
  }

  // Frames ----------------------------------------------------------------------------------

  ready(frame, hello) {
    this.moving.value = false;
    batch(() => {
      if (!frame.resumed) this.forget();
      this.me.value = frame.participant;
      this.network.value = hello.network;
      this.epoch.value = hello.epoch;
      this.limits = hello.limits;
      this.owner.value = frame.operations.some((operation) => operation.permission === "admin");
      this.head.value = Math.max(this.head.value, frame.cursor);
      this.participants.value = byKey(frame.participants, "id");
      this.channels.value = byKey(frame.channels, "name");
      this.activities.value = new Map();
      this.busy.value = new Set();
      this.partials.value = new Map(); // the next signal has the whole text
      this.summaries(frame.threads);
    });
  }

  /** Another log, or too much was missed: discard everything. */
  forget() {
    this.threads.value = new Map();
    this.labels.value = new Map();
    this.flow.value = [];
    this.delivered.value = new Map();
    this.head.value = 0;
    this.control.forget();
  }

  summaries(threads) {
    const known = new Map(this.threads.peek());
    for (const summary of threads) {
      const thread = known.get(summary.id) ?? new Thread(summary.id);
      thread.summarise(summary);
      known.set(summary.id, thread);
    }
    this.threads.value = known;
  }

  event({ message }) {
    batch(() => {
      this.message(message);
      this.spoke(message);
      this.endTyping(message);
      if (!message.amends) this.arrived.value = message;
    });
  }

  /** Add a message of the log, from an event or a result. */
  message(message) {
    this.thread(message.thread_id).hear(message);
    // Events leave out empty fields.
    if (message.mentions?.includes(this.me.peek())) this.mention(message);
    if (message.seq > this.head.peek()) this.head.value = message.seq;
    if (message.amends) return;
    this.flows(message);
    this.endPartial(turnOf(message));
  }

  /** The reader wrote it elsewhere: the hub moves the read mark likewise, without a signal. */
  spoke({ thread_id, tseq, sender_id }) {
    const thread = this.thread(thread_id);
    const isNext = sender_id === this.me.peek() && thread.read.peek() === tseq - 1;
    if (isNext && thread.marking === null) thread.read.value = tseq;
  }

  mention(message) {
    if (!message.amends) this.thread(message.thread_id).mentioned(message.tseq);
  }

  flows(message) {
    const at = this.now();
    this.flow.value = [...this.flow.peek().slice(1 - FLOW), { message, at }];
  }

  signal(frame) {
    const name = `on_${frame.type}`;
    const listener = [this, this.control].find((each) => each[name]);
    if (listener) batch(() => listener[name](frame));
  }

  on_moving({ data }) {
    this.moving.value = data.state === "moving";
  }

  on_presence({ data }) {
    const participants = new Map(this.participants.peek());
    for (const person of [...data.online, ...(data.down ?? [])]) participants.set(person.id, person);
    for (const id of data.offline) {
      const known = participants.get(id);
      if (known) participants.set(id, { ...known, present: false });
      this.endActivities(id);
    }
    this.participants.value = participants;
  }

  on_activity({ sender, thread_id, data: given, age_s = 0 }) {
    const data = activityIn(given);
    if (!thread_id) {
      const busy = new Set(this.busy.peek());
      if (data.state === "idle") busy.delete(sender);
      else busy.add(sender);
      this.busy.value = busy;
      return;
    }
    const mine = new Map(this.activities.peek().get(sender));
    const since = this.now() - age_s * 1000;
    if (data.state === "idle") mine.delete(thread_id);
    else mine.set(thread_id, { ...data, since });
    // A turn that continued without sending the text, or has ended, will not send it.
    const said = this.partials.peek().get(data.turn);
    if (said && (data.state === "idle" || data.step > said.step)) this.endPartial(data.turn);
    this.activities.value = new Map(this.activities.peek()).set(sender, mine);
  }

  endActivities(agent) {
    const activities = new Map(this.activities.peek());
    if (activities.delete(agent)) this.activities.value = activities;
    const busy = new Set(this.busy.peek());
    if (busy.delete(agent)) this.busy.value = busy;
    for (const { turn, sender } of this.partials.peek().values()) {
      if (sender === agent) this.endPartial(turn);
    }
  }

  /** A partial message of an agent, which may never be sent. */
  on_partial({ sender, thread_id, data }) {
    const { turn, step, text } = data ?? {};
    if (!thread_id || typeof text !== "string" || typeof turn !== "string" || agentOf(turn) !== sender) return;
    const at = this.partials.peek().get(turn)?.at ?? this.now();
    const said = { turn, sender, thread: thread_id, step, text, at };
    this.partials.value = new Map(this.partials.peek()).set(turn, said);
  }

  endPartial(turn) {
    if (!this.partials.peek().has(turn)) return;
    const left = new Map(this.partials.peek());
    left.delete(turn);
    this.partials.value = left;
  }

  on_typing({ sender, thread_id }) {
    if (!thread_id) return;
    const here = new Map(this.typing.peek().get(thread_id)).set(sender, this.now() + 5000);
    this.typing.value = new Map(this.typing.peek()).set(thread_id, here);
  }

  /** The sender stopped writing it. */
  endTyping({ thread_id, sender_id }) {
    const here = new Map(this.typing.peek().get(thread_id));
    if (here.delete(sender_id)) this.typing.value = new Map(this.typing.peek()).set(thread_id, here);
  }

  on_delivered({ data }) {
    const delivered = new Map(this.delivered.peek());
    for (const [participant, seq] of Object.entries(data)) delivered.set(participant, seq);
    this.delivered.value = delivered;
  }

  /** A channel is new, or its members changed. */
  on_channel({ data }) {
    const joined = data.members.includes(this.me.peek());
    this.channels.value = new Map(this.channels.peek()).set(data.name, { ...data, joined });
  }

  /** Another tab moved the read mark. A newer mark of this tab is still being sent. */
  on_read({ thread_id, data }) {
    const thread = this.thread(thread_id);
    thread.read.value = Math.max(thread.marking ?? 0, data.upto);
  }
}

/** An agent's activity, as the hub understands it: text or an object, of which only known fields count. */
function activityIn(data) {
  const given = typeof data === "object" && data !== null ? data : { state: data };
  const { state } = given;
  const said = { state: typeof state === "string" ? state || "idle" : state ? "working" : "idle" };
  for (const name of ["tool", "for", "turn"]) if (typeof given[name] === "string") said[name] = given[name];
  if (Number.isInteger(given.step)) said.step = given.step;
  return said;
}

function byKey(items, key) {
  return new Map(items.map((item) => [item[key], item]));
}

function sum(items, of) {
  let total = 0;
  for (const item of items) total += of(item);
  return total;
}
