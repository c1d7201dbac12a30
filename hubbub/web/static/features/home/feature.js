// What one sees before one has gone anywhere: who is here, and how to begin.
import { html, useComputed } from "../../core/ui.js";
import { count } from "../../core/numbers.js";
import { Avatar } from "../../parts/avatar.js";
import { Icon } from "../../parts/icon.js";
import { Activity } from "../../parts/presence.js";
import { Shortcut } from "../../parts/shortcut.js";
import { t } from "../../texts.js";

const MOST = 12;

export default function home(app) {
  app.add.views.add({ name: "", view: Home, title: () => "" });
}

function Home({ app }) {
  const ids = useComputed(() => {
    const agents = [...app.state.participants.value.values()].filter(({ kind }) => kind === "agent");
    const here = agents.sort((a, b) => Number(b.present) - Number(a.present) || (a.id < b.id ? -1 : 1));
    return here.slice(0, MOST).map(({ id }) => id).join(" ");
  }).value;
  const unread = app.state.unread.value;
  return html`<div class="home">
    <h1>${app.state.network.value}</h1>
    <p class="quiet">${t.home.lead}</p>
    ${unread > 0 && html`<p><a class="button primary" href=${app.router.href("inbox", ["threads"])}>
      <${Icon} name="inbox" />${t.home.unread(count(unread))}</a></p>`}
    ${ids && html`<ul class="agents" aria-label=${t.home.agents}>
      ${ids.split(" ").map((id) => html`<${Agent} key=${id} app=${app} id=${id} />`)}
    </ul>`}
    <p class="tips">
      <span><${Shortcut} keys="mod+k" /> ${t.home.find}</span>
      <span><${Shortcut} keys="alt+shift+arrowdown" /> ${t.sidebar.nextUnread}</span>
      <span><${Shortcut} keys="?" /> ${t.help.title}</span>
    </p>
  </div>`;
}

function Agent({ app, id }) {
  const card = useComputed(() => app.state.participant(id)?.card).value;
  return html`<li>
    <button onClick=${() => app.talkTo(id)}>
      <${Avatar} app=${app} id=${id} size=${2.25} presence=${true} />
      <span><b>${id}</b><${Activity} app=${app} id=${id} />
        <span class="quiet">${card?.description}</span></span>
    </button>
  </li>`;
}
