// In the panels of an agent and of a running turn: stop it, take it over, see the messages that reach
// it meanwhile, and the approvals it waits for.
import { firstWords } from "../../core/messages.js";
import { html } from "../../core/ui.js";
import { Icon } from "../../parts/icon.js";
import { Moment } from "../../parts/moment.js";
import { activityOf } from "../../parts/presence.js";
import { later } from "../../texts-later.js";
import { t } from "../../texts.js";
import { ApprovalCards } from "./approval-card.js";
import { SpokenFor, StoppedNote } from "./banners.js";
import { takeOver } from "./actions.js";

const words = later.takeover;
const SHOWN = 12;

export function AgentControls({ app, id }) {
  const { control, owner } = app.state;
  const stop = control.stops.value.find((each) => each.scope === "agent" && each.target === id);
  const takeover = control.takeovers.value.find((each) => each.agent === id);
  return html`<section class="agent-controls">
    ${stop && html`<${StoppedNote} app=${app} stop=${stop} />`}
    ${takeover && html`<${SpokenFor} app=${app} takeover=${takeover} />`}
    <div class="buttons">
      ${!stop && html`<${StopIt} app=${app} id=${id} />`}
      ${owner.value && !takeover && html`<button type="button" title=${words.explain(id)}
        onClick=${() => takeOver(app, id)}><${Icon} name="everyone" size=${16} />${words.take}</button>`}
    </div>
    ${takeover?.by === app.state.me.value && html`<${Heard} app=${app} agent=${id} />`}
  </section>`;
}

/** Stop its turn if the reader can see it; otherwise, for owners, the agent. */
function StopIt({ app, id }) {
  const doing = activityOf(app.state, id);
  if (!app.state.owner.value && !doing?.turn) return null;
  const run = () => app.run("stop", { thread: doing?.thread ?? null, turn: doing?.turn ?? null, agent: id });
  return html`<button type="button" class=${doing ? "danger" : ""} onClick=${run}>
    <${Icon} name="stop" size=${16} />${t.control.stop}</button>`;
}

/** The latest messages that reached it during the takeover, with links to answer them. */
function Heard({ app, agent }) {
  const heard = app.state.control.overheard.value.filter((each) => each.agent === agent);
  return html`
    <div class="section"><h3>${words.heard}</h3></div>
    ${!heard.length && html`<p class="quiet small">${words.heardNothing}</p>`}
    <div role="log" aria-label=${words.heard}><ul class="heard">
      ${heard.slice(-SHOWN).reverse().map(({ message }) => html`<li key=${message.id}>
        <a href=${app.router.href("thread", [message.thread_id, message.id])}>
          <span><b>${app.state.nameOf(message.sender_id)}</b> <span class="quiet cut">${app.state.titleOf(message.thread_id, agent)}</span>
            <span class="quiet end"><${Moment} at=${message.sent_at} /></span></span>
          <span class="item-text" dir="auto">${firstWords(message, 200)}</span>
        </a></li>`)}
    </ul></div>
  `;
}

export function TurnControls({ app, id }) {
  const { control, activities } = app.state;
  const asked = control.askedBy(id);
  const all = [...activities.value.values()].flatMap((threads) => [...threads]);
  const doing = all.find(([, { turn }]) => turn === id);
  const stop = () => app.run("stop", { thread: doing?.[0] ?? null, turn: id });
  return html`
    <${ApprovalCards} app=${app} approvals=${asked} />
    <div class="buttons"><button type="button" class="danger" onClick=${stop}>
      <${Icon} name="stop" size=${16} />${t.control.stop}</button></div>
  `;
}
