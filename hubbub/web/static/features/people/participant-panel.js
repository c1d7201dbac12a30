// The card of a participant, on the right.
import { html, useComputed } from "../../core/ui.js";
import { channelThread } from "../../core/ids.js";
import { Avatar } from "../../parts/avatar.js";
import { Icon } from "../../parts/icon.js";
import { Activity, activityOf, Presence } from "../../parts/presence.js";
import { mention } from "../../parts/text-fields.js";
import { t } from "../../texts.js";

export function ParticipantPanel({ app, id }) {
  const known = useComputed(() => app.state.participant(id)).value;
  if (!known) return html`<p class="quiet">${t.people.unknown(id)}</p>`;
  const me = id === app.state.me.value;
  const { description, skills = [] } = known.card ?? {};
  return html`
    <section class="card-head">
      <${Avatar} app=${app} id=${id} size=${3} />
      <div>
        <h3 dir="auto">${app.state.nameOf(id)}${me && html` <span class="chip">${t.people.you}</span>`}</h3>
        ${known.card?.name && html`<p class="quiet">@${id}</p>`}
        <p class="quiet">${t.people.kinds[known.kind]} · <${Presence} app=${app} id=${id} />
          ${" "}${known.present ? t.presence.here : t.presence.away}</p>
      </div>
    </section>
    ${known.down && html`<p class="note">${id} ${known.down}.</p>`}
    ${description && html`<p dir="auto">${description}</p>`}
    ${skills.length > 0 && html`<ul class="chips" aria-label=${t.people.skills}>
      ${skills.map((skill) => html`<li class="chip" key=${skill}>${skill}</li>`)}
    </ul>`}
    ${!me && html`<div class="buttons">
      <button class="primary" onClick=${() => app.talkTo(id)}>
        <${Icon} name="message" />${t.people.message}</button>
      ${app.here.value && html`<button onClick=${() => mention(id)}>
        <${Icon} name="at" />${t.people.mention}</button>`}
    </div>`}
    <${Doing} app=${app} id=${id} />
    <${Common} app=${app} id=${id} me=${me} />
  `;
}

/** Its current activity, with the thread if the reader can know it. */
function Doing({ app, id }) {
  const thread = useComputed(() => activityOf(app.state, id)?.thread ?? null).value;
  const busy = useComputed(() => activityOf(app.state, id) !== null).value;
  if (!busy) return null;
  return html`<p class="note">
    <span class="presence busy" aria-hidden="true"></span>
    <${Activity} app=${app} id=${id} />
    ${thread &&
    html`<a href=${app.router.href("thread", [thread])}>${app.state.titleOf(thread)}</a>`}
  </p>`;
}

function Common({ app, id, me }) {
  const names = useComputed(() =>
    [...app.state.channels.value.values()]
      .filter((channel) => channel.members.includes(id) && (me || channel.joined))
      .map((channel) => channel.name)
      .join(" "),
  ).value;
  if (!names) return null;
  return html`<section>
    <div class="section"><h3>${me ? t.people.channels : t.people.common}</h3></div>
    <ul class="members">
      ${names.split(" ").map((name) => html`<li key=${name}>
        <a class="list-row" href=${app.router.href("thread", [channelThread(name)])}>
          <${Icon} name="hash" size=${16} /><span class="cut name">${name}</span>
        </a>
      </li>`)}
    </ul>
  </section>`;
}
