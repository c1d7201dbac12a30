// What people hold of the network: what is stopped, who speaks for whom, what waits for a person's
// word. As the hub tells it: by signals, and asked for whenever one has joined.
import { batch, computed, signal } from "../vendor/signals.js";
import { membersOf, rootOf } from "./ids.js";

const OVERHEARD = 200; // messages that are remembered of what reached agents one speaks for

export class Control {
  /** @param {import("./state.js").State} state */
  constructor(state) {
    this.state = state;
    this.modes = signal(new Map()); // thread -> how the next word shall reach who works there
    this.voices = signal(new Map()); // thread -> who speaks there, where it is not the first choice
    this.stops = signal([]);
    this.breakers = signal([]);
    this.takeovers = signal([]);
    this.approvals = signal(new Map());
    this.overheard = signal([]);
    /** Approvals that the reader may decide, the oldest first. */
    this.waiting = computed(() =>
      [...this.approvals.value.values()]
        .filter((each) => each.state === "pending" && this.mayDecide(each))
        .sort((a, b) => (a.asked_at < b.asked_at ? -1 : 1)),
    );
  }

  forget() {
    for (const list of [this.stops, this.breakers, this.takeovers, this.overheard]) list.value = [];
    this.approvals.value = new Map();
  }

  /** Ask the hub for all of it; what it does not let the reader ask is nothing. */
  async refresh(client) {
    const ask = async (operation, take) => client.may(operation) && take(await client.call(operation));
    await Promise.all([
      ask("list_stops", ({ stops }) => (this.stops.value = stops)),
      ask("list_breakers", ({ breakers }) => (this.breakers.value = breakers)),
      ask("list_takeovers", ({ takeovers }) => (this.takeovers.value = takeovers)),
      ask("list_approvals", ({ approvals }) => this.pending(approvals)),
    ]);
  }

  /** These wait now; what else was thought to wait was decided while nobody told. */
  pending(approvals) {
    const decided = [...this.approvals.peek()].filter(([, each]) => each.state !== "pending");
    const known = new Map(decided);
    for (const each of approvals) if (!known.has(each.id)) known.set(each.id, each);
    this.approvals.value = known;
  }

  // Signals ---------------------------------------------------------------------------------

  on_stops({ data }) {
    this.stops.value = data.stops;
    this.breakers.value = data.breakers;
  }

  on_takeovers({ data }) {
    this.takeovers.value = data.takeovers;
  }

  on_approval({ data }) {
    this.note(data);
  }

  /** What is decided stays so, whatever comes in late. */
  note(approval) {
    const known = this.approvals.peek();
    const before = known.get(approval.id);
    if (before && before.state !== "pending" && approval.state === "pending") return;
    this.approvals.value = new Map(known).set(approval.id, approval);
  }

  /** It goes into threads that are shown; the others are no threads of the reader's. */
  on_overheard({ data }) {
    const { message } = data;
    const known = this.overheard.peek();
    if (known.some((each) => each.agent === data.agent && each.message.id === message.id)) return;
    batch(() => {
      this.overheard.value = [...known.slice(1 - OVERHEARD), data];
      const isShown = this.state.threads.peek().has(message.thread_id);
      if (isShown && !this.state.takesPart(message.thread_id)) this.state.message(message);
    });
  }

  // Questions -------------------------------------------------------------------------------

  mayDecide({ may_decide: may, approvers = [] }) {
    const me = this.state.me.value;
    return may || approvers.includes(me) || (!approvers.length && this.state.owner.value);
  }

  /** Whether an agent reads a thread. */
  reads(agent, thread) {
    const root = rootOf(thread);
    if (root.startsWith("dm.")) return membersOf(root).includes(agent);
    if (!root.startsWith("channel.")) return root === "broadcast";
    return this.state.channels.value.get(root.slice("channel.".length))?.members.includes(agent) ?? false;
  }

  /** What keeps agents from being woken in a thread: {stops, breakers, takeovers}, lists of each. */
  holding(thread) {
    const isOf = (id) => id === thread || thread.startsWith(`${id}.t`);
    return {
      stops: this.stops.value.filter(
        ({ scope, target }) =>
          scope === "all" || (scope === "thread" && isOf(target)) ||
          (scope === "agent" && this.reads(target, thread)),
      ),
      breakers: this.breakers.value.filter((each) => isOf(each.thread_id)),
      takeovers: this.takeovers.value.filter(({ agent }) => this.reads(agent, thread)),
    };
  }

  /** Approvals that turns in a thread wait for. */
  askedIn(thread) {
    return [...this.approvals.value.values()].filter(
      (each) => each.thread_id === thread && each.state === "pending",
    );
  }

  /** Approvals that a turn waits for. */
  askedBy(turn) {
    return [...this.approvals.value.values()].filter(
      (each) => each.turn === turn && each.state === "pending",
    );
  }

  /** Agents that the reader speaks for and that read a thread. */
  mineIn(thread) {
    const me = this.state.me.value;
    return this.takeovers.value
      .filter(({ agent, by }) => by === me && this.reads(agent, thread))
      .map(({ agent }) => agent);
  }

  /** The agent as which the reader speaks in a thread, or null. To everybody one speaks oneself. */
  voiceIn(thread) {
    const mine = this.mineIn(thread);
    const chosen = this.voices.value.get(thread);
    if (chosen !== undefined) return mine.includes(chosen) ? chosen : null;
    return (rootOf(thread) !== "broadcast" && mine[0]) || null;
  }

  /** Agents at work in a thread: [agent, {state, tool, turn, since}]. */
  workIn(thread) {
    return [...this.state.activities.value]
      .filter(([, threads]) => threads.has(thread))
      .map(([agent, threads]) => [agent, threads.get(thread)]);
  }

  /** What goes along with what is said in a thread: arguments of the operation. */
  speechIn(thread) {
    const voice = this.voiceIn(thread);
    if (voice) return { speak_as: voice };
    const mode = this.modes.value.get(thread);
    return mode && this.workIn(thread).length ? { mode } : {};
  }

  /** A way that was chosen holds for one message. */
  said(thread) {
    if (this.modes.peek().has(thread)) this.choose(this.modes, thread, null);
  }

  /** Note a choice for a thread in `modes` or `voices`; null takes a mode back. */
  choose(choices, thread, value) {
    const next = new Map(choices.peek());
    if (value === null && choices === this.modes) next.delete(thread);
    else next.set(thread, value);
    choices.value = next;
  }
}
