// `#/control`: all stops, breakers and takeovers.
import { duration } from "../../core/time.js";
import { visible } from "../../core/markdown.js";
import { html } from "../../core/ui.js";
import { Empty } from "../../parts/empty.js";
import { Icon } from "../../parts/icon.js";
import { Moment } from "../../parts/moment.js";
import { later } from "../../texts-later.js";
import { t } from "../../texts.js";
import { handBack, release, resume } from "./actions.js";
import { Remaining } from "./remaining.js";

const words = later.held;

export function InCharge({ app }) {
  const { stops, breakers, takeovers } = app.state.control;
  const isEmpty = stops.value.length + breakers.value.length + takeovers.value.length === 0;
  const isOwner = app.state.owner.value;
  return html`
    <header class="title"><h1 tabindex="-1" data-focus>${t.control.title}</h1>
      <div class="tools">${isOwner && html`<button type="button" class="danger" onClick=${() => app.run("stop", {})}>
        <${Icon} name="stop" size=${16} />${words.stopAll}</button>`}</div>
    </header>
    <div class="page in-charge">
      ${isEmpty && html`<${Empty} icon="check" title=${words.nothing.title} text=${words.nothing.text} />`}
      <${Part} title=${words.stopped} items=${stops.value.map((each) => stopRow(app, each))} />
      <${Part} title=${words.breakers} items=${breakers.value.map((each) => breakerRow(app, each))} />
      <${Part} title=${words.spokenFor} items=${takeovers.value.map((each) => takeoverRow(app, each))} />
      ${!isEmpty && !isOwner && html`<p class="quiet">${words.ownersOnly}</p>`}
    </div>
  `;
}

function Part({ title, items }) {
  if (!items.length) return null;
  return html`<section aria-label=${title}>
    <div class="section"><h2>${title}</h2></div><ul class="held">${items}</ul>
  </section>`;
}

function Row({ icon, mood, title, href, children, action }) {
  return html`<li>
    <span class=${`sign ${mood}`}><${Icon} name=${icon} size=${16} /></span>
    <div><b>${href ? html`<a href=${href}>${title}</a>` : title}</b><p class="quiet">${children}</p></div>
    ${action && html`<button type="button" onClick=${action.run}>${action.title}</button>`}
  </li>`;
}

function stopRow(app, stop) {
  const { scope, target, by, at, reason } = stop;
  const title = words.item[scope]?.(scope === "thread" ? app.state.titleOf(target) : target) ?? target;
  const href = scope === "thread" ? app.router.href("thread", [target]) : null;
  const action = app.state.owner.value && { title: words.resume, run: () => resume(app, stop) };
  return html`<${Row} key=${`${scope} ${target}`} icon="stop" mood="danger" title=${title} href=${href}
    action=${action}>
    ${words.byWhom(by)}, <${Moment} at=${at} />${reason && html`: <q dir="auto">${visible(reason)}</q>`}
  <//>`;
}

function breakerRow(app, breaker) {
  const { thread_id: thread, at, turns, within_s: within } = breaker;
  const action = app.state.owner.value && { title: words.release, run: () => release(app, breaker) };
  return html`<${Row} key=${thread} icon="warning" mood="warn" title=${app.state.titleOf(thread)}
    href=${app.router.href("thread", [thread])} action=${action}>
    <${Moment} at=${at} />: ${words.breaker(turns, duration(within * 1000))}
  <//>`;
}

function takeoverRow(app, { agent, by, until }) {
  const isMine = by === app.state.me.value;
  const { mine, others, left, handBack: title } = later.takeover;
  const action = (isMine || app.state.owner.value) && { title, run: () => handBack(app, agent) };
  const who = isMine ? mine(agent) : others(agent, by);
  return html`<${Row} key=${agent} icon="everyone" mood="info" title=${who} action=${action}>
    <${Remaining} until=${until} say=${left} />
  <//>`;
}
