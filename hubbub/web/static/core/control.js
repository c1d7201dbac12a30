// The control state of the network: stops, takeovers and pending approvals. Fetched on joining, and
// updated by the hub's signals.
import { batch, computed, signal } from "../vendor/signals.js";
import { membersOf, rootOf } from "./ids.js";

const OVERHEARD = 200; // messages kept of those that reached agents the reader has taken over

export class Control {
  /** @param {import("./state.js").State} state */
  constructor(state) {
    this.state = state;
    this.modes = signal(new Map()); // thread -> how the next message reaches agents working there
    this.voices = signal(new Map()); // thread -> the agent the reader speaks as, if not the default
    this.stops = signal([]);
    this.breakers = signal([]);
    this.takeovers = signal([]);
    this.approvals = signal(new Map());
    this.overheard = signal([]);
    /** Approvals that the reader can decide, oldest first. */
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

  /** Fetch all of it; without permission, treat it as empty. */
  async refresh(client) {
    const ask = async (operation, take) => client.may(operation) && take(await client.call(operation));
    await Promise.all([
      ask("list_stops", ({ stops }) => (this.stops.value = stops)),
      ask("list_breakers", ({ breakers }) => (this.breakers.value = breakers)),
      ask("list_takeovers", ({ takeovers }) => (this.takeovers.value = takeovers)),
      ask("list_approvals", ({ approvals }) => this.pending(approvals)),
    ]);
  }

  /** Replace the pending approvals; any other was decided while disconnected. */
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

  /** A decided approval stays decided, even if a late signal arrives. */
  note(approval) {
    const known = this.approvals.peek();
    const before = known.get(approval.id);
    if (before && before.state !== "pending" && approval.state === "pending") return;
    this.approvals.value = new Map(known).set(approval.id, approval);
  }

  /** Apply to threads that are shown; the others are not the reader's. */
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

  /** What keeps agents from being woken in a thread: lists of {stops, breakers, takeovers}. */
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

  /** Agents in a thread that the reader has taken over. */
  mineIn(thread) {
    const me = this.state.me.value;
    return this.takeovers.value
      .filter(({ agent, by }) => by === me && this.reads(agent, thread))
      .map(({ agent }) => agent);
  }

  /** The agent that the reader speaks as in a thread, or null. In the broadcast thread it is always null. */
  voiceIn(thread) {
    const mine = this.mineIn(thread);
    const chosen = this.voices.value.get(thread);
    if (chosen !== undefined) return mine.includes(chosen) ? chosen : null;
    return (rootOf(thread) !== "broadcast" && mine[0]) || null;
  }

  /** Agents working in a thread: [agent, {state, tool, turn, since}]. */
  workIn(thread) {
    return [...this.state.activities.value]
      .filter(([, threads]) => threads.has(thread))
      .map(([agent, threads]) => [agent, threads.get(thread)]);
  }

  /** Arguments to send with a message in a thread. */
  speechIn(thread) {
    const voice = this.voiceIn(thread);
    if (voice) return { on_behalf_of: voice };
    const mode = this.modes.value.get(thread);
    return mode && this.workIn(thread).length ? { mode } : {};
  }

  /** A chosen mode applies to one message. */
  said(thread) {
    if (this.modes.peek().has(thread)) this.choose(this.modes, thread, null);
  }

  /** Record a choice for a thread in `modes` or `voices`; null clears a mode. */
  choose(choices, thread, value) {
    const next = new Map(choices.peek());
    if (value === null && choices === this.modes) next.delete(thread);
    else next.set(thread, value);
    choices.value = next;
  }
}
