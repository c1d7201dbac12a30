// Banners above the composer: stops, takeovers and pending approvals of the thread.
import { duration } from "../../core/time.js";
import { visible } from "../../core/markdown.js";
import { html } from "../../core/ui.js";
import { Choice } from "../../parts/choice.js";
import { Icon } from "../../parts/icon.js";
import { Moment } from "../../parts/moment.js";
import { later } from "../../texts-later.js";
import { ApprovalCards } from "./approval-card.js";
import { handBack, release, resume, takeOver } from "./actions.js";
import { Remaining } from "./remaining.js";

export function Banners({ app, thread }) {
  const { control } = app.state;
  const { stops, breakers, takeovers } = control.holding(thread.id);
  return html`<div class="banners">
    <${ApprovalCards} app=${app} approvals=${control.askedIn(thread.id)} />
    ${stops.map((each) => html`<${StoppedNote} key=${`${each.scope} ${each.target}`} app=${app} stop=${each} />`)}
    ${breakers.map((each) => html`<${OpenBreaker} key=${each.thread_id} app=${app} breaker=${each} />`)}
    ${takeovers.map(
      (each) => html`<${SpokenFor} key=${each.agent} app=${app} takeover=${each} thread=${thread.id} />`,
    )}
  </div>`;
}

function Banner({ mood, icon, children, buttons }) {
  return html`<div class=${`note banner ${mood}`} role="status">
    <${Icon} name=${icon} size=${16} /><p>${children}</p><span class="buttons">${buttons}</span>
  </div>`;
}

/** A button in a banner. */
function Button({ title, run }) {
  return html`<button type="button" class="small" onClick=${run}>${title}</button>`;
}

export function StoppedNote({ app, stop }) {
  const { scope, target, by, reason, at } = stop;
  const words = scope === "agent" ? later.held.of.agent(target) : later.held.of[scope];
  return html`<${Banner} mood="danger" icon="stop"
    buttons=${app.state.owner.value && html`<${Button} title=${later.held.resume} run=${() => resume(app, stop)} />`}>
    <b>${words}</b> ${later.held.byWhom(by)}, <${Moment} at=${at} />
    ${reason && html`: <q dir="auto">${visible(reason)}</q>`}
  <//>`;
}

function OpenBreaker({ app, breaker }) {
  const { turns, within_s: within, at } = breaker;
  return html`<${Banner} mood="warn" icon="warning"
    buttons=${app.state.owner.value &&
    html`<${Button} title=${later.held.release} run=${() => release(app, breaker)} />`}>
    <b>${later.held.breakers}</b>, <${Moment} at=${at} />: ${later.held.breaker(turns, duration(within * 1000))}
  <//>`;
}

/** `thread`: the thread of the takeover. */
export function SpokenFor({ app, takeover, thread = null }) {
  const { agent, by, until } = takeover;
  const { control, me, owner } = app.state;
  const isMine = by === me.value;
  const words = later.takeover;
  const buttons = html`
    ${isMine && thread && html`<${Voice} app=${app} control=${control} thread=${thread} agent=${agent} />`}
    ${isMine && html`<${Button} title=${words.renew} run=${() => takeOver(app, agent)} />`}
    ${(isMine || owner.value) && html`<${Button} title=${words.handBack} run=${() => handBack(app, agent)} />`}
  `;
  return html`<${Banner} mood=${isMine ? "voice" : "info"} icon="everyone" buttons=${buttons}>
    <b>${isMine ? words.mine(agent) : words.others(agent, by)}</b>${" "}
    <${Remaining} until=${until} say=${words.left} />
  <//>`;
}

/** The agent that the reader speaks as here, or the reader if they are a member. */
function Voice({ app, control, thread, agent }) {
  if (!app.state.takesPart(thread)) return null;
  const { as, voice: label } = later.takeover;
  return html`<${Choice} label=${label} choices=${[[agent, as(agent)], [null, as(app.state.me.value)]]}
    value=${control.voiceIn(thread)} choose=${(voice) => control.choose(control.voices, thread, voice)} />`;
}
