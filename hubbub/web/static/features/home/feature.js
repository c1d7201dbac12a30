// What one sees before one has gone anywhere: who is here, what one can ask them, and the first steps.
import { html, useComputed } from "../../core/ui.js";
import { directThread } from "../../core/ids.js";
import { visible } from "../../core/markdown.js";
import { count } from "../../core/numbers.js";
import { Avatar } from "../../parts/avatar.js";
import { Icon } from "../../parts/icon.js";
import { Activity } from "../../parts/presence.js";
import { Shortcut } from "../../parts/shortcut.js";
import { t } from "../../texts.js";
import { FirstSteps, Steps } from "./steps.js";

const MOST = 12;
const MOST_EXAMPLES = 3;

export default function home(app) {
  const steps = new Steps(app);
  app.add.views.add({ name: "", view: () => html`<${Home} app=${app} steps=${steps} />`, title: () => "" });
}

function Home({ app, steps }) {
  const ids = useComputed(() => {
    const agents = [...app.state.participants.value.values()].filter(({ kind }) => kind === "agent");
    const here = agents.sort((a, b) => Number(b.present) - Number(a.present) || (a.id < b.id ? -1 : 1));
    return here.slice(0, MOST).map(({ id }) => id).join(" ");
  }).value;
  const agents = ids ? ids.split(" ") : [];
  const unread = app.state.unread.value;
  return html`<div class="home">
    <h1>${app.state.network.value}</h1>
    <p class="quiet">${t.home.lead}</p>
    ${unread > 0 && html`<p><a class="button primary" href=${app.router.href("inbox", ["threads"])}>
      <${Icon} name="inbox" />${t.home.unread(count(unread))}</a></p>`}
    <${FirstSteps} app=${app} steps=${steps} agent=${agents[0]} />
    ${ids && html`<ul class="agents" aria-label=${t.home.agents}>
      ${agents.map((id) => html`<${Agent} key=${id} app=${app} id=${id} />`)}
    </ul>`}
    <p class="tips">
      <span><${Shortcut} keys="mod+k" /> ${t.home.find}</span>
      <span><${Shortcut} keys="alt+shift+arrowdown" /> ${t.sidebar.nextUnread}</span>
      <span><${Shortcut} keys="?" /> ${t.help.title}</span>
    </p>
  </div>`;
}

/** Who it is, and what one can ask it: a click asks. */
function Agent({ app, id }) {
  const card = useComputed(() => app.state.participant(id)?.card).value;
  const ask = (text) => () => {
    app.talkTo(id);
    app.send(directThread(app.state.me.peek(), id), text);
  };
  return html`<li>
    <button class="whom" onClick=${() => app.talkTo(id)}>
      <${Avatar} app=${app} id=${id} size=${2.25} presence=${true} />
      <span><b>${app.state.nameOf(id)}</b><${Activity} app=${app} id=${id} />
        <span class="quiet">${card?.description}</span></span>
    </button>
    ${(card?.examples ?? []).slice(0, MOST_EXAMPLES).map((text) => html`<button class="example" key=${text}
      dir="auto" onClick=${ask(text)}>${visible(text)}</button>`)}
  </li>`;
}
