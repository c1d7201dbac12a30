// All about a message: when and what it is, what made it, whom it reached, and itself as JSON.
import { html, useEffect, useState } from "../../core/ui.js";
import { visible } from "../../core/markdown.js";
import { fullTime } from "../../core/time.js";
import { turnOf } from "../../core/messages.js";
import { Avatar } from "../../parts/avatar.js";
import { MessageLink } from "../../parts/message-link.js";
import { TurnLink } from "../../parts/turn-link.js";
import { later } from "../../texts-later.js";
import { t } from "../../texts.js";
import { useReceipts } from "./use-receipts.js";

export function MessagePanel({ app, id }) {
  const [message, setMessage] = useState(null);
  const [problem, setProblem] = useState(null);
  useEffect(() => {
    app.message(id).then(setMessage, (error) => setProblem(error.message));
  }, [id]);
  if (problem) return html`<p class="note warn">${problem}</p>`;
  if (!message) return html`<p class="quiet" role="status">${t.receipts.loading}</p>`;
  return html`
    <${Facts} app=${app} message=${message} />
    <${Receipts} app=${app} message=${message} />
    <${Raw} message=${message} />
  `;
}

function Facts({ app, message }) {
  const { id, sender_id: sender, thread_id: thread, cause_id: cause, hop } = message;
  const interaction = message.interaction_id;
  const kind = t.conversation.kinds[message.sender_kind];
  const words = t.receipts;
  return html`<dl class="facts">
    <dt>${words.from}</dt><dd>${app.state.nameOf(sender)}, ${kind}${message.spoken_by &&
    html` <span class="chip">${later.marks.spokenBy(message.spoken_by)}</span>`}</dd>
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
    ${message.outside && html`<dt>${later.marks.content}</dt><dd>${later.marks.outside}</dd>`}
    ${message.mentions.length > 0 && html`<dt>${words.mentions}</dt><dd>${message.mentions.join(", ")}</dd>`}
  </dl>`;
}

function Cause({ app, message, cause }) {
  if (turnOf(message)) return html`<${TurnLink} app=${app} id=${cause} />`;
  return /^m\d+$/.test(cause) ? html`<${MessageLink} app=${app} id=${cause} />` : cause;
}

function Receipts({ app, message }) {
  const { receipts, more, problem } = useReceipts(app, message);
  if (problem) return html`<p class="quiet">${problem}</p>`;
  if (!receipts) return null;
  return html`
    <div class="section"><h3>${t.receipts.title}</h3></div>
    ${receipts.length === 0 && html`<p class="quiet">${t.receipts.nobody}</p>`}
    <ul class="receipts">
      ${receipts.map((receipt) => html`<${Receipt} key=${receipt.participant} app=${app} ...${receipt} />`)}
    </ul>
    ${more && html`<p class="quiet">${t.receipts.more}</p>`}
  `;
}

function Receipt({ app, participant, present, delivered, read, woken, explanation, turn, state }) {
  return html`<li>
    <${Avatar} app=${app} id=${participant} size=${1.5} presence />
    <b>${app.state.nameOf(participant)}</b>${" "}
    <span class="quiet">${t.receipts.outcome({ present, delivered, read })}</span>
    ${woken && html`<span class="woken quiet" title=${explanation}>${t.receipts.woken}
      ${" "}${turn && html`<${TurnLink} app=${app} id=${turn}>${t.receipts.turn(state)}<//>`}</span>`}
  </li>`;
}

function Raw({ message }) {
  const [open, setOpen] = useState(false);
  return html`<details class="json" onToggle=${(event) => setOpen(event.currentTarget.open)}>
    <summary>${t.receipts.raw}</summary>
    ${open && html`<pre tabindex="0">${visible(JSON.stringify(message, null, 2))}</pre>`}
  </details>`;
}
