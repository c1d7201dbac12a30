// The details of a message: time, type, cause, recipients, and its JSON.
import { noteReceipts } from "../../core/delivery.js";
import { visible } from "../../core/markdown.js";
import { turnOf } from "../../core/messages.js";
import { fullTime } from "../../core/time.js";
import { html } from "../../core/ui.js";
import { AsJson } from "../../parts/as-json.js";
import { Avatar } from "../../parts/avatar.js";
import { MessageLink, useMessage } from "../../parts/message-link.js";
import { TurnLink } from "../../parts/turn-link.js";
import { activitySigns, useWatched } from "../../parts/watched.js";
import { mention } from "../../parts/text-fields.js";
import { later } from "../../texts-later.js";
import { t } from "../../texts.js";

export function MessagePanel({ app, id }) {
  const { message, problem } = useMessage(app, id);
  if (problem) return html`<p class="note warn">${problem}</p>`;
  if (!message) return html`<p class="quiet" role="status">${t.loading}</p>`;
  return html`
    <${Facts} app=${app} message=${message} />
    <${Receipts} app=${app} message=${message} />
    <${AsJson} title=${t.receipts.raw} text=${() => visible(JSON.stringify(message, null, 2))} />
  `;
}

function Facts({ app, message }) {
  const { id, sender_id: sender, thread_id: thread, cause_id: cause, hop } = message;
  const interaction = message.interaction_id;
  const kind = t.conversation.kinds[message.sender_kind];
  const words = t.receipts;
  return html`<dl class="facts">
    <dt>${words.from}</dt><dd>${app.state.nameOf(sender)}, ${kind}${message.sent_by &&
    html` <span class="chip">${later.marks.sentBy(message.sent_by)}</span>`}</dd>
    <dt>${words.at}</dt><dd><time datetime=${message.sent_at}>${fullTime(message.sent_at)}</time></dd>
    <dt>${words.in}</dt>
    <dd><a href=${app.router.href("thread", [thread, id])}>${app.state.titleOf(thread)}</a>
      <span class="quiet"> ${words.position(message.tseq)}</span></dd>
    <dt>${words.id}</dt><dd><code>${id}</code></dd>
    <dt>${words.interaction}</dt>
    <dd><a href=${app.router.href("interaction", [interaction])}>${interaction}</a>
      <span class="quiet"> ${words.hop(hop)}</span></dd>
    ${cause && html`<dt>${words.cause}</dt>
      <dd><${Cause} app=${app} message=${message} cause=${cause} /></dd>`}
    ${message.untrusted && html`<dt>${later.marks.content}</dt><dd>${later.marks.untrusted}</dd>`}
    ${message.mentions.length > 0 && html`<dt>${words.mentions}</dt><dd>${message.mentions.join(", ")}</dd>`}
  </dl>`;
}

function Cause({ app, message, cause }) {
  if (turnOf(message)) return html`<${TurnLink} app=${app} id=${cause} />`;
  return /^m\d+$/.test(cause) ? html`<${MessageLink} app=${app} id=${cause} />` : cause;
}

/** The recipients, people first; for agents, why each was woken or not. */
function Receipts({ app, message }) {
  const { value, error } = useWatched(() => read(app, message), {
    key: message.id,
    signs: () => [app.state.delivered.value, ...activitySigns(app, null)],
    goesOn: (found) => found?.receipts.some(({ read: seen, woken, state }) => !seen || (woken && state !== "ended")) ?? false,
  });
  if (error) return html`<p class="quiet">${error.message}</p>`;
  if (!value) return null;
  const people = value.receipts.filter(({ kind }) => kind !== "agent");
  const agents = value.receipts.filter(({ kind }) => kind === "agent");
  return html`
    ${people.length > 0 && html`<div class="section"><h3>${t.receipts.title}</h3></div>
      <ul class="receipts">${people.map((each) => html`<${Receipt} key=${each.participant} app=${app} receipt=${each} />`)}</ul>`}
    ${!value.receipts.length && html`<p class="quiet">${t.receipts.nobody}</p>`}
    ${agents.length > 0 && html`<${WhoWasWoken} app=${app} agents=${agents} />`}
    ${value.more && html`<p class="quiet">${t.wakes.more}</p>`}
  `;
}

async function read(app, message) {
  const found = await app.client.call("read_receipts", { id: message.id });
  if (message.sender_id === app.state.me.peek()) noteReceipts(app.state, message.seq, found.receipts);
  return found;
}

function Receipt({ app, receipt }) {
  return html`<li>
    <${Avatar} app=${app} id=${receipt.participant} size=${1.5} presence />
    <b>${app.state.nameOf(receipt.participant)}</b>${" "}
    <span class="quiet">${t.receipts.outcome(receipt)}</span>
  </li>`;
}

// The hub's wake decisions for a message: each candidate agent, and why it was woken or not.

const FOLDED_FROM = 4; // below this number, agents that were not woken are listed unfolded

/** `agents`: their receipts. */
function WhoWasWoken({ app, agents }) {
  const woken = agents.filter((each) => each.woken);
  const asleep = agents.filter((each) => !each.woken);
  return html`
    <section class="wakes">
      <div class="section"><h3>${t.wakes.title}</h3></div>
      ${!woken.length && html`<p class="quiet">${t.wakes.nobody}</p>`}
      <${Decisions} app=${app} receipts=${woken} />
      ${asleep.length < FOLDED_FROM
        ? html`<${Decisions} app=${app} receipts=${asleep} />`
        : html`<details class="folded">
            <summary>${t.wakes.notWoken(asleep.length)}</summary>
            <${Decisions} app=${app} receipts=${asleep} />
          </details>`}
    </section>
  `;
}

function Decisions({ app, receipts }) {
  if (!receipts.length) return null;
  return html`
    <ul>
      ${receipts.map(
        (receipt) => html`<${Decision} key=${receipt.participant} app=${app} receipt=${receipt} />`,
      )}
    </ul>
  `;
}

function Decision({ app, receipt }) {
  const { participant, woken, explanation, turn, state, step, answer } = receipt;
  const { answers, inPrompt, notInPrompt } = later.receipts;
  return html`
    <li class="wake" data-woken=${woken ? "" : null}>
      <b>${app.state.nameOf(participant)}</b>${" "}
      <span class=${woken ? "chip accent" : "chip"}>${woken ? t.wakes.states[state] : t.wakes.no}</span>
      ${answer && html`${" "}<span class=${answer === "answered" ? "chip ok" : "chip warn"}>${answers[answer]}</span>`}
      <p class="quiet">${t.wakes.because(explanation)}</p>
      <p class="quiet small">${t.receipts.outcome(receipt)}</p>
      ${woken && turn && html`<${TurnLink} app=${app} id=${turn}>${t.wakes.turn(turn)}<//>`}
      ${woken && html`${" "}<span class="quiet small">${step != null ? inPrompt(step) : notInPrompt}</span>`}
      ${mayBeAsked(app, receipt) && html`<button type="button" class="small" onClick=${() => mention(participant)}>
        ${t.wakes.ask(participant)}</button>`}
    </li>
  `;
}

/** Whether an agent that was not woken can still be asked by name. */
function mayBeAsked(app, { woken, answer }) {
  return app.here.value !== null && (!woken || answer === "silent" || answer === "declined");
}
