// Human control: approvals, stops, takeovers, steering of running agents, and costs. Everything except
// this file is loaded on demand.
import { kindOf, membersOf } from "../../core/ids.js";
import { count, dollars } from "../../core/numbers.js";
import { retry } from "../../core/retry.js";
import { html } from "../../core/ui.js";
import { Badge } from "../../parts/badge.js";
import { dialogOf } from "../../parts/dialog.js";
import { Icon } from "../../parts/icon.js";
import { lazy } from "../../parts/lazy.js";
import { Pinned } from "../../parts/pinned.js";
import { activitySigns, useWatched } from "../../parts/watched.js";
import { t } from "../../texts.js";

const SHEET = "control.css";
const part = (load, name) => lazy(() => load().then((module) => module[name]), SHEET);
const Approvals = part(() => import("./approvals.js"), "Approvals");
const ApprovalPanel = part(() => import("./approvals.js"), "ApprovalPanel");
const Banners = part(() => import("./banners.js"), "Banners");
const Work = part(() => import("./work.js"), "Work");
const StopDialog = part(() => import("./stop-dialog.js"), "StopDialog");
const InCharge = part(() => import("./overview.js"), "InCharge");
const AgentControls = part(() => import("./agent.js"), "AgentControls");
const TurnControls = part(() => import("./agent.js"), "TurnControls");
const Spending = part(() => import("./spending.js"), "Spending");
const Costs = part(() => import("./costs.js"), "Costs");
const SpokenBy = part(() => import("./marks.js"), "SpokenBy");
const Marks = part(() => import("./marks.js"), "Marks");

export default function control(app) {
  const stopping = dialogOf(app, StopDialog);
  addViews(app);
  addToThreads(app);
  app.add.commands.add({
    id: "stop", title: t.control.stop, slash: "stop", hint: t.control.stopHint, keys: "mod+.", icon: "stop",
    group: t.groups.threads,
    run: (context, reason = "") => (stopping.value = { about: { ...context, reason } }),
  });
  app.add.commands.add({
    id: "approvals", title: t.control.approvals, slash: "approvals", keys: "g a", icon: "hand", group: t.groups.going,
    run: () => app.router.go("inbox", ["approvals"]),
  });
  app.add.commands.add({
    id: "control", title: t.control.title, slash: "stops", keys: "g c", icon: "stop", group: t.groups.going,
    run: () => app.router.go("control"),
  });
  app.add.commands.add({
    id: "costs", title: t.control.costs, keys: "g u", icon: "poll", group: t.groups.going,
    run: () => app.router.go("costs"),
  });
  addSpeaking(app);
}

/** As in the terminal: "/interrupt text" sends the text so; "/takeover" applies to the thread's agent. */
function addSpeaking(app) {
  const group = t.groups.threads;
  for (const mode of ["queue", "steer", "interrupt"]) {
    app.add.commands.add({
      id: mode, title: t.control.modes[mode], slash: mode, hint: t.control.modeHint, group, hidden: true,
      when: ({ thread }) => thread !== null,
      run: ({ thread }, text = "") => {
        if (!text) throw new Error(t.control.modeHint);
        app.speak(app.state.thread(thread), text, { mode });
      },
    });
  }
  const deed = (name) => async (context, rest = "") => {
    const [named, time] = rest.trim().replace(/^@/, "").split(/\s+/);
    const agent = named || agentIn(app, context.thread);
    if (!agent) return app.say(t.control.which);
    if (time && !DURATION.test(time)) return app.say(t.control.howLong);
    return (await retry(() => import("./actions.js")))[name](app, agent, time && minutesOf(time));
  };
  const when = () => app.state.owner.peek();
  for (const name of ["takeOver", "handBack"]) {
    const id = name.toLowerCase();
    const title = t.control[name];
    app.add.commands.add({ id, title, slash: id, hint: t.control.whom, group, when, run: deed(name) });
  }
}

const DURATION = /^\d+[mh]$/;
const minutesOf = (time) => parseInt(time) * (time.endsWith("h") ? 60 : 1);

/** The only agent that a command on a thread can mean, or null. */
function agentIn(app, thread) {
  const agents = membersOf(thread ?? "").filter((id) => isAgent(app, id));
  return agents.length === 1 ? agents[0] : null;
}

function addViews(app) {
  const { control } = app.state;
  app.add.sidebar.add({ order: 6, view: Waiting });
  app.add.bar.add({ order: 5, view: Held });
  app.add.inbox.add({
    name: "approvals", title: t.control.approvals, order: 30, urgent: true,
    count: () => control.waiting.value.length, view: Approvals,
  });
  app.add.views.add({ name: "control", view: InCharge, title: () => t.control.title });
  app.add.views.add({ name: "costs", view: Costs, title: () => t.control.costs });
  app.add.panels.add({ kind: "approval", order: 10, view: ApprovalPanel });
  app.add.panels.add({
    kind: "turn", order: 5, view: ({ id }) => isOpen(app, id) && html`<${TurnControls} app=${app} id=${id} />`,
  });
  app.add.panels.add({
    kind: "participant", order: 20,
    view: ({ id }) => isAgent(app, id) && html`<${AgentControls} app=${app} id=${id} />`,
  });
  app.add.panels.add({
    kind: "participant", order: 50,
    view: ({ id }) => isAgent(app, id) && html`<${Spending} app=${app} agent=${id} />`,
  });
  app.add.panels.add({
    kind: "thread", order: 50, view: ({ id }) => html`<${Spending} app=${app} thread=${id} />`,
  });
}

/** Whether a turn is known to be running, or waiting for approval. */
function isOpen(app, turn) {
  const { control, activities } = app.state;
  const runs = (threads) => [...threads.values()].some((doing) => doing.turn === turn);
  return control.askedBy(turn).length > 0 || [...activities.value.values()].some(runs);
}

const isAgent = (app, id) => app.state.participant(id)?.kind === "agent";

function addToThreads(app) {
  app.add.tools.add({ order: 80, view: Spent });
  app.add.tools.add({ order: 90, view: StopTool });
  app.add.notes.add({
    order: 20, view: ({ thread }) => isHeld(app, thread.id) && html`<${Banners} app=${app} thread=${thread} />`,
  });
  app.add.work.add({ view: Work });
  app.add.marks.add({
    slot: "name",
    view: ({ message }) => message.sent_by && html`<${SpokenBy} by=${message.sent_by} />`,
  });
  app.add.marks.add({
    slot: "below", order: 5,
    view: (props) => isMarked(app, props.message) && html`<${Marks} ...${props} />`,
  });
}

/** Whether there is anything to show above the composer. */
function isHeld(app, thread) {
  const { control } = app.state;
  const { stops, breakers, takeovers } = control.holding(thread);
  return stops.length + breakers.length + takeovers.length + control.askedIn(thread).length > 0;
}

function isMarked(app, message) {
  if (message.untrusted || message.request) return true;
  const { not_woken: asleep, queued } = app.receipts.value.get(message.id) ?? {};
  return Object.keys(asleep ?? {}).length > 0 || Object.values(queued ?? {}).some((n) => n > 1);
}

/** Below the inbox, while approvals are pending. */
function Waiting({ app }) {
  const n = app.state.control.waiting.value.length;
  const { view, args } = app.route.value;
  const current = view === "inbox" && args[0] === "approvals";
  if (!n) return null;
  return html`<${Pinned} icon="hand" title=${t.control.approvals} href=${app.router.href("inbox", ["approvals"])}
    current=${current} unread>
    <${Badge} mention shown=${n} told=${t.control.waiting(n)} />
  <//>`;
}

/** In the bar, while there are stops or takeovers. */
function Held({ app }) {
  const { stops, breakers, takeovers } = app.state.control;
  const n = stops.value.length + breakers.value.length + takeovers.value.length;
  if (!n) return null;
  return html`<a class="button danger small" href=${app.router.href("control")} title=${t.control.held}
    aria-label=${`${t.control.held}: ${n}`}><${Icon} name="stop" size=${14} />${n}<span class="word">${t.control.heldWord}</span></a>`;
}

/** In a thread's header: today's cost of its turns, or their tokens if no model has a price. */
function Spent({ app, thread }) {
  const spends = () => kindOf(thread.root) !== "direct" || agentIn(app, thread.id) !== null;
  const { value } = useWatched(async () => spends() && app.client.call("read_spending", { thread: thread.id }), {
    key: thread.id, after: 300,
    signs: () => [app.state.arrived.value?.thread_id === thread.id && app.state.arrived.value, ...activitySigns(app, null)],
  });
  const { usd = 0, tokens_in: read = 0, tokens_out: written = 0 } = value?.total ?? {};
  if (!(usd || read + written)) return null;
  const says = usd ? dollars(usd) : t.control.tokens(count(read + written));
  return html`<button type="button" class="small spent" title=${t.control.spent} aria-label=${`${t.control.spent}: ${says}`}
    onClick=${() => app.open("thread", thread.id)}>${says}</button>`;
}

/** In a thread's header, if agents can work there. */
function StopTool({ app, thread }) {
  const agents = [...app.state.participants.value.values()].filter(({ kind }) => kind === "agent");
  const { control } = app.state;
  if (!agents.some(({ id }) => control.reads(id, thread.id))) return null;
  const isBusy = control.workIn(thread.id).length > 0;
  return html`<button type="button" class=${isBusy ? "icon danger" : "icon"} aria-label=${t.control.stop}
    title=${t.control.stopKeys} onClick=${() => app.run("stop", { thread: thread.id })}>
    <${Icon} name="stop" /><span class="word">${t.control.stop}</span></button>`;
}
