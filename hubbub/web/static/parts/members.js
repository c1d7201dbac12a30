// A list of participants with presence; each opens its card.
import { html } from "../core/ui.js";
import { t } from "../texts.js";
import { Avatar } from "./avatar.js";
import { Activity } from "./presence.js";

export function MemberList({ app, ids }) {
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
