// One approval: the agent, the call with its arguments, the reason, and the decision.
import { visible } from "../../core/markdown.js";
import { html, useEffect } from "../../core/ui.js";
import { Icon } from "../../parts/icon.js";
import { Avatar } from "../../parts/avatar.js";
import { Moment } from "../../parts/moment.js";
import { TurnLink } from "../../parts/turn-link.js";
import { later } from "../../texts-later.js";
import { Arguments, changedNames, Changes } from "./arguments.js";
import { DecisionForm } from "./decision.js";
import { Remaining, useRemaining } from "./remaining.js";

const words = later.approvals;
const MOODS = { approved: "ok", started: "ok", denied: "danger", expired: "warn", pending: "accent" };

/** Several approvals; those of one tool in one turn have a button for all. */
export function ApprovalCards({ app, approvals }) {
  const groups = new Map();
  for (const each of approvals.filter((one) => one.state === "pending" && app.state.control.mayDecide(one))) {
    const key = `${each.turn} ${each.tool}`;
    groups.set(key, [...(groups.get(key) ?? []), each]);
  }
  return html`
    ${[...groups].filter(([, all]) => all.length > 1).map(([key, all]) => html`<p class="all-at-once" key=${key}>
      <button type="button" class="primary" onClick=${() => approveAll(app, all)}>
        <${Icon} name="checks" size=${16} />${words.approveAll(all.length, visible(all[0].tool))}</button></p>`)}
    ${approvals.map((each) => html`<${ApprovalCard} key=${each.id} app=${app} approval=${each} />`)}
  `;
}

function approveAll(app, approvals) {
  return app.tried(async () => {
    for (const { id, hash } of approvals) {
      app.state.control.note(await app.client.write("approve", { id, hash }));
    }
  }, words.done.approve(approvals[0].tool));
}

export function ApprovalCard({ app, approval }) {
  const { description, reason, state, final } = approval;
  if (state !== "pending") {
    const wasChanged = final != null && changedNames(approval.arguments, final).length > 0;
    return html`<${DecidedCard} app=${app} approval=${approval} wasChanged=${wasChanged} />`;
  }
  return html`
    <${Card} app=${app} approval=${approval}>
      ${reason && html`<p class="why"><b>${words.why}</b> ${visible(reason)}</p>`}
      ${description && html`<p class="quiet does" title=${words.does}>${visible(description)}</p>`}
      <${Pending} app=${app} approval=${approval} />
    <//>
  `;
}

/** A decided approval as a short record, with details folded. */
function DecidedCard({ app, approval, wasChanged }) {
  const { id, reason, final, arguments: asked } = approval;
  useEffect(() => app.mine.within("approval").remove(id), [id]); // remove its stored draft
  return html`
    <${Card} app=${app} approval=${approval}>
      <${Decided} app=${app} approval=${approval} wasChanged=${wasChanged} />
      <details class="folded">
        <summary>${words.details}</summary>
        ${reason && html`<p class="quiet small"><b>${words.why}</b> ${visible(reason)}</p>`}
        <${Arguments} title=${wasChanged ? words.asAsked : words.arguments} value=${asked} />
        ${wasChanged && html`<${Changes} before=${asked} after=${final} />`}
      </details>
    <//>
  `;
}

function Card({ app, approval, children }) {
  const { id, agent, tool, state } = approval;
  return html`
    <article class="approval" data-approval=${id} data-state=${state} aria-label=${`${agent}: ${tool}`}>
      <${Head} app=${app} approval=${approval} />
      ${children}
    </article>
  `;
}

function Head({ app, approval: { agent, tool, thread_id: thread, turn, asked_at, state } }) {
  return html`<header>
    <${Avatar} app=${app} id=${agent} size=${2} />
    <div>
      <h3><button type="button" class="who" onClick=${() => app.open("participant", agent)}>${app.state.nameOf(agent)}</button>
        ${" "}${state === "pending" ? words.asks : words.asked}${" "}<code>${visible(tool)}</code></h3>
      <p class="quiet small">
        <a href=${app.router.href("thread", [thread])}>${app.state.titleOf(thread)}</a>
        ${" · "}<${TurnLink} app=${app} id=${turn}>${words.turn}<//>${" · "}<${Moment} at=${asked_at} />
      </p>
    </div>
    <span class=${`chip ${MOODS[state] ?? ""}`}>${words.states[state]}</span>
  </header>`;
}

function Pending({ app, approval }) {
  const left = useRemaining(approval.expires_at);
  const mayDecide = app.state.control.mayDecide(approval);
  const approvers = approval.approvers?.length ? approval.approvers.join(", ") : words.owners;
  return html`
    ${!(mayDecide && left > 0) && html`<${Arguments} title=${words.arguments} value=${approval.arguments} />`}
    <p class="quiet small expiry">
      <${Remaining} until=${approval.expires_at} say=${words.expires} over=${words.over} />
    </p>
    ${!mayDecide && html`<p class="quiet">${words.forOthers(approvers)}</p>`}
    ${mayDecide && left > 0 && html`<${DecisionForm} app=${app} approval=${approval} />`}
  `;
}

function Decided({ app, approval: { agent, state, decided_by: by, decided_at: at, verdict }, wasChanged }) {
  const isAway = app.state.participant(agent)?.present === false;
  return html`<p class="verdict">
    <b>${words.states[state]}</b>${by && html` ${(state === "cancelled" ? words.afterApproval : words.by)(by)}`}${wasChanged && html` ${words.changedBefore}`}
    ${at && html`<span class="quiet">${" · "}<${Moment} at=${at} /></span>`}
    ${verdict && html`<q dir="auto">${visible(verdict)}</q>`}
    ${state === "approved" && isAway && html` ${words.runsLater(app.state.nameOf(agent))}`}
  </p>`;
}
