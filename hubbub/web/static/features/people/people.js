// The participants in the left column: agents, people, services. Absent people are folded.
import { html, signal, useComputed } from "../../core/ui.js";
import { Avatar } from "../../parts/avatar.js";
import { Icon } from "../../parts/icon.js";
import { Activity, Presence } from "../../parts/presence.js";
import { t } from "../../texts.js";
import { parted, peopleOf } from "./order.js";

const MOST = 15;
const all = signal(false);
const folded = signal(false);

export function People({ app }) {
  const ids = useComputed(() => {
    const { listed, away } = parted(peopleOf(app.state.participants.value.values(), app.state.me.value));
    return [listed, away].map((each) => each.map(({ id }) => id).join(" ")).join("\n");
  }).value;
  const [listed, away] = ids.split("\n").map((each) => each.split(" ").filter(Boolean));
  const everybody = [...listed, ...away];
  const shown = folded.value ? [] : all.value ? everybody : listed.slice(0, MOST);
  const hidden = folded.value ? 0 : everybody.length - shown.length;
  return html`<section class="group people" aria-label=${t.people.title}>
    <div class="section">
      <h2><button class="fold" aria-expanded=${!folded.value} onClick=${() => (folded.value = !folded.value)}>
        ${t.people.title}<${Icon} name="down" size=${12} />
      </button></h2>
      <span class="number small">${everybody.length}</span>
    </div>
    <ul>${shown.map((id) => html`<${Person} key=${id} app=${app} id=${id} />`)}</ul>
    ${(hidden > 0 || (all.value && !folded.value && everybody.length > Math.min(listed.length, MOST))) &&
    html`<button class="plain small more" onClick=${() => (all.value = !all.value)}>
      ${!hidden ? t.sidebar.fewer : hidden === away.length ? t.sidebar.away(hidden) : t.sidebar.more(hidden)}
    </button>`}
  </section>`;
}

function Person({ app, id }) {
  const open = useComputed(() => {
    const { open } = app.route.value;
    return open?.kind === "participant" && open.id === id;
  }).value;
  return html`<li data-kind=${app.state.participant(id)?.kind}>
    <button class="list-row" data-participant=${id} aria-current=${open ? "true" : null} title=${id}
      onClick=${() => app.open("participant", id)}>
      <${Avatar} app=${app} id=${id} size=${1.25} />
      <${Presence} app=${app} id=${id} told=${true} />
      <span class="cut name" dir="auto">${app.state.nameOf(id)}</span>
      <${Activity} app=${app} id=${id} />
    </button>
  </li>`;
}
