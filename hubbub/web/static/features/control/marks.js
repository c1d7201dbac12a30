// Marks on messages: takeovers, untrusted content, requests and their results, and agents that the
// reader's own message did not wake.
import { fullTime, timeOf } from "../../core/time.js";
import { html } from "../../core/ui.js";
import { Icon } from "../../parts/icon.js";
import { presenceOf } from "../../parts/presence.js";
import { later } from "../../texts-later.js";

const words = later.marks;
const MOODS = { task: "info", question: "warn", result: "ok", failed: "danger" };
const ICONS = { question: "help", reply: "reply", result: "check", failed: "warning" };

/** Beside the sender's name. */
export function SpokenBy({ by }) {
  return html`<span class="chip voice" title=${words.sentByHint(by)}>${words.sentBy(by)}</span>`;
}

/** Below the message. `follows`: the previous message of the same sender's run, or null. */
export function Marks({ app, message, follows }) {
  const { request } = message;
  const untrusted = message.untrusted && !follows?.untrusted;
  return html`<div class="marks">
    ${request && html`<${Request} app=${app} request=${request} />`}
    ${untrusted && html`<span class="chip" title=${words.untrustedHint}>
      <${Icon} name="link" size=${12} />${words.untrusted}</span>`}
    <${Kept} app=${app} message=${message} />
  </div>`;
}

function Request({ app, request: { id, kind, outcome = "", deadline } }) {
  const mood = MOODS[kind] ?? "";
  if (kind === "task") {
    return html`<span class=${`chip ${mood}`} title=${deadline && fullTime(deadline)}>
      <${Icon} name="forward" size=${12} />${deadline ? words.task(timeOf(deadline)) : words.taskNoDeadline}</span>`;
  }
  const why = words.outcomes[outcome] ?? outcome;
  return html`<span class=${`chip ${mood}`}><${Icon} name=${ICONS[kind]} size=${12} />
    ${kind === "failed" ? words.failed(why) : words[kind]}${" "}
    <a href=${app.router.href("message", [id])}>${words.request}</a></span>`;
}

/** The hub's result of sending it: agents not woken, with the reason, and agents that are still busy. */
function Kept({ app, message }) {
  const { not_woken: asleep = {}, queued = {} } = app.receipts.value.get(message.id) ?? {};
  const lines = [
    ...Object.entries(asleep).map(([id, code]) => words.notWoken(id, words.reasons[code] ?? code)),
    ...Object.entries(queued).filter(([id, n]) => n > 1 && presenceOf(app.state, id) === "busy")
      .map(([id, n]) => words.queued(id, n - 1)),
  ];
  if (!lines.length) return null;
  return html`<p class="kept" role="status">${lines.map((line) => html`<span key=${line}>${line}${" "}</span>`)}</p>`;
}
