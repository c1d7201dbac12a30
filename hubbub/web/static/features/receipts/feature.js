// Delivery of messages: recipients, readers, agents woken, and unknown @names.
import { deliveryOf, noteReceipts } from "../../core/delivery.js";
import { effect, html } from "../../core/ui.js";
import { Icon } from "../../parts/icon.js";
import { lazy } from "../../parts/lazy.js";
import { t } from "../../texts.js";

const MessagePanel = lazy(() => import("./message-panel.js").then((module) => module.MessagePanel));
const Suggestions = lazy(() => import("./suggestions.js").then((module) => module.Suggestions));

const ASK_AFTER_MS = 400;

export default function receipts(app) {
  app.add.marks.add({ slot: "meta", order: 90, view: Delivery });
  app.add.marks.add({ slot: "below", order: 10, view: Unresolved });
  app.add.panels.add({ kind: "message", order: 10, view: MessagePanel });
  app.add.marks.add({
    slot: "below", order: 20,
    view: ({ message, thread }) => isLastOfMine(app, thread, message) && html`<${Suggestions} app=${app} message=${message} />`,
  });
  askForTheLast(app);
}

/** In direct conversations agents are always woken. */
function isLastOfMine(app, thread, { sender_id: sender, tseq }) {
  if (sender !== app.state.me.value || thread.root.startsWith("dm.")) return false;
  thread.changed.value;
  return thread.said(thread.head.value, -1) === tseq;
}

function Unresolved({ app, message }) {
  const unresolved = app.receipts.value.get(message.id)?.unresolved ?? [];
  const names = unresolved.filter((name) => name !== message.sender_id);
  if (!names.length) return null;
  const isKnown = (name) => app.state.participant(name) !== null;
  const outside = names.filter(isKnown);
  const nobody = names.filter((name) => !isKnown(name));
  return html`<p class="unresolved" role="status">
    ${nobody.length > 0 && t.receipts.unresolved(nobody)}${" "}
    ${outside.length > 0 && t.receipts.outside(outside)}
  </p>`;
}

/**
 * The hub signals deliveries as they happen. For older messages, ask once per thread: a participant
 * who has the reader's last message has all earlier ones.
 */
function askForTheLast(app) {
  let timer = 0;
  effect(() => {
    const id = app.here.value;
    const isReady = app.status.value.state === "ready";
    clearTimeout(timer);
    if (id && isReady) timer = setTimeout(() => ask(app, id), ASK_AFTER_MS);
  });
}

async function ask(app, id) {
  const thread = app.state.threads.peek().get(id);
  const me = app.state.me.peek();
  const mine = [...(thread?.messages.values() ?? [])].filter((message) => message.sender_id === me);
  const last = mine.sort((a, b) => b.tseq - a.tseq)[0];
  if (!last || deliveryOf(app.state, last).state === "delivered") return;
  try {
    const { receipts: told } = await app.client.call("read_receipts", { id: last.id });
    noteReceipts(app.state, last.seq, told);
  } catch (error) {
    if (error.code !== "unknown_message") app.say(error.message);
  }
}

// A small mark on the reader's own messages: stored, or delivered to everyone present.

const NAMED = 6;

function Delivery({ app, message }) {
  if (message.sender_id !== app.state.me.value) return null;
  const { state, reached, waiting } = deliveryOf(app.state, message);
  const words = inWords(app, reached, waiting);
  return html`<button type="button" class="delivery" tabindex="-1" title=${words} aria-label=${words}
    onClick=${() => app.open("message", message.id)}>
    <${Icon} name=${state === "delivered" ? "checks" : "check"} size=${14} />
  </button>`;
}

/** "Delivered to bob, calculator · waiting for carol (away)" */
function inWords(app, reached, waiting) {
  const away = (id) => (app.state.participant(id)?.present ? id : t.receipts.away(id));
  return [
    reached.length ? t.receipts.delivered(some(reached)) : t.receipts.stored,
    waiting.length ? t.receipts.waiting(some(waiting.map(away))) : "",
  ].filter(Boolean).join(" · ");
}

function some(names) {
  if (names.length <= NAMED) return names.join(", ");
  return t.receipts.andMore(names.slice(0, NAMED).join(", "), names.length - NAMED);
}
