// The panel of a thread: details, members and actions.
import { membersOf, parentOf, rootOf } from "../../core/ids.js";
import { html, useComputed } from "../../core/ui.js";
import { Avatar } from "../../parts/avatar.js";
import { Icon, iconOfThread } from "../../parts/icon.js";
import { Moment } from "../../parts/moment.js";
import { Activity } from "../../parts/presence.js";
import { t } from "../../texts.js";

export function ThreadPanel({ app, id }) {
  const root = rootOf(id);
  const thread = app.state.thread(id);
  const channel = useComputed(() => channelOf(app.state, root)).value;
  const members = useComputed(() => membersIn(app.state, root)).value;
  return html`
    <section class="card-head">
      <${Icon} name=${iconOfThread(thread.kind)} size=${22} />
      <div>
        <h3>${app.state.titleOf(id)}</h3>
        ${channel?.description && html`<p class="quiet" dir="auto">${channel.description}</p>`}
        ${parentOf(id) && html`<p class="quiet">${t.threadPanel.replies}</p>`}
      </div>
    </section>
    <div class="buttons">
      <button onClick=${() => app.show(id)}>${t.threadPanel.show}</button>
      ${channel && html`<${Membership} app=${app} channel=${channel} />`}
    </div>
    <${Figures} thread=${thread} />
    <section>
      <div class="section"><h3>${t.threadPanel.members(members.length)}</h3></div>
      <${MemberList} app=${app} ids=${members} />
    </section>
  `;
}

function Membership({ app, channel }) {
  const command = channel.joined ? "channel-leave" : "channel-join";
  return html`<button onClick=${() => app.run(command, app.context(), channel.name)}>
    ${channel.joined ? t.channels.leave : t.channels.join}
  </button>`;
}

function Figures({ thread }) {
  thread.changed.value;
  const latest = thread.latest;
  return html`<dl class="facts">
    <dt>${t.threadPanel.messages}</dt><dd class="number">${thread.head.value.toLocaleString()}</dd>
    <dt>${t.threadPanel.unread}</dt><dd class="number">${thread.unread.value.toLocaleString()}</dd>
    ${latest && html`<dt>${t.threadPanel.latest}</dt><dd><${Moment} at=${latest.sent_at} /></dd>`}
    <dt>${t.threadPanel.id}</dt><dd><code>${thread.id}</code></dd>
  </dl>`;
}

function channelOf(state, root) {
  return root.startsWith("channel.") ? (state.channels.value.get(root.slice(8)) ?? null) : null;
}

/** Ids of the thread's members: everyone, for the broadcast thread. */
function membersIn(state, root) {
  if (root.startsWith("dm.")) return membersOf(root);
  if (root.startsWith("channel.")) return channelOf(state, root)?.members ?? [];
  return [...state.participants.value.keys()];
}

// A list of participants with presence; each opens its card.

function MemberList({ app, ids }) {
  if (!ids.length) return html`<p class="quiet small">${t.people.none}</p>`;
  return html`<ul class="members">
    ${ids.map((id) => html`<${Member} key=${id} app=${app} id=${id} />`)}
  </ul>`;
}

function Member({ app, id }) {
  return html`<li>
    <button class="list-row" onClick=${() => app.open("participant", id)}>
      <${Avatar} app=${app} id=${id} size=${1.5} presence=${true} />
      <span class="cut name" dir="auto">${app.state.nameOf(id)}</span>
      ${id === app.state.me.value && html`<span class="chip">${t.people.you}</span>`}
      <${Activity} app=${app} id=${id} />
    </button>
  </li>`;
}
