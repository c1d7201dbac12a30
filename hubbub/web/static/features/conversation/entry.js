// Something that was said here and is not stored yet, or that the hub has refused.
import { html } from "../../core/ui.js";
import { fullTime, timeOf } from "../../core/time.js";
import { Avatar } from "../../parts/avatar.js";
import { Icon } from "../../parts/icon.js";
import { Prose } from "../../parts/prose.js";
import { t } from "../../texts.js";

export function Entry({ app, entry, named }) {
  const isHeld = entry.state === "sending" && app.status.value.state === "refused";
  const state = isHeld ? "held" : entry.state;
  const sender = entry.args.speak_as ?? app.state.me.value;
  const at = new Date(entry.at).toISOString();
  return html`
    <article class=${named ? "message named" : "message"} data-message=${entry.cid} data-state=${state}
      aria-busy=${state === "sending"} aria-label=${t.conversation.states[state]}>
      ${named ? html`<${Avatar} app=${app} id=${sender} size=${2.25} />` : html`<span class="at beside" />`}
      <div class="content">
        ${named && html`<header>
          <span class="sender">${app.state.nameOf(sender)}</span>
          <time class="at" datetime=${at} title=${fullTime(at)}>${timeOf(at)}</time>
        </header>`}
        <${Prose} app=${app} text=${entry.text} />
        ${entry.state === "refused" && html`<${Refused} app=${app} entry=${entry} />`}
      </div>
      <div class="meta">
        ${state === "sending" && html`<${Delivery} icon="clock" words=${t.conversation.states.sending} />`}
        ${state === "held" && html`<${Delivery} icon="warning" words=${t.conversation.states.held} />`}
      </div>
    </article>
  `;
}

function Delivery({ icon, words }) {
  return html`<span class="delivery" title=${words}>
    <${Icon} name=${icon} size=${14} /><span class="hidden-text">${words}</span>
  </span>`;
}

function Refused({ app, entry }) {
  const edit = () => {
    app.outbox.drop(entry);
    app.compose.edit(entry);
  };
  return html`<div class="refused note danger" role="alert">
    <${Icon} name="warning" size=${16} />
    <span>${t.conversation.refused(entry.error)}</span>
    <span class="choices">
      <${Choice} title=${t.conversation.again} run=${() => app.outbox.again(entry)} />
      <${Choice} title=${t.conversation.edit} run=${edit} />
      <${Choice} title=${t.conversation.discard} run=${() => app.outbox.drop(entry)} />
    </span>
  </div>`;
}

function Choice({ title, run }) {
  return html`<button type="button" class="small" onClick=${run}>${title}</button>`;
}
