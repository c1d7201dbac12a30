// The start view: participants, suggested questions, and the first steps.
import { focusView } from "../../core/focus.js";
import { directThread } from "../../core/ids.js";
import { visible } from "../../core/markdown.js";
import { count } from "../../core/numbers.js";
import { effect, html, signal, useComputed, useEffect } from "../../core/ui.js";
import { Avatar } from "../../parts/avatar.js";
import { Icon } from "../../parts/icon.js";
import { Activity } from "../../parts/presence.js";
import { Shortcut } from "../../parts/shortcut.js";
import { t } from "../../texts.js";

const EVERYONE = "broadcast";
const MOST = 12;
const MOST_EXAMPLES = 3;

export default function home(app) {
  const steps = new Steps(app);
  app.add.speech.add({ with: () => null, said: (id) => app.route.peek().view === "" && app.show(id) });
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
    <${Ask} app=${app} />
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

/** The composer of the start view: it writes to everyone, or to @name. */
function Ask({ app }) {
  const thread = app.state.threads.value.get(EVERYONE);
  useEffect(() => {
    if (!thread) app.state.thread(EVERYONE);
  }, [thread]);
  return thread && html`<div class="ask">
    ${["notes", "foot"].map((slot) => app.add[slot].items.value.map(
      (part) => html`<${part.view} key=${part.key} app=${app} thread=${thread} />`,
    ))}
  </div>`;
}

/** A participant with suggested questions: a click asks one. */
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

// The first steps of a new user: each is ticked once done anywhere on the page.

const OPERATIONS = {
  ask: ["send_text_message", "reply"],
  make: ["add_agent"],
  control: ["approve", "deny", "stop", "take_over"],
};
const LOOKS = ["turn", "interaction", "sequence"]; // views and panels
const KEY = "steps";

class Steps {
  constructor(app) {
    this.app = app;
    this.done = signal({});
    effect(() => (this.done.value = app.state.me.value ? app.mine.get(KEY, {}) : {}));
    effect(() => {
      const wrote = app.client.wrote.value;
      for (const [step, names] of Object.entries(OPERATIONS)) if (names.includes(wrote)) this.tick(step);
    });
    effect(() => {
      const { view, open } = app.route.value;
      if (LOOKS.includes(view) || LOOKS.includes(open?.kind)) this.tick("look");
    });
  }

  tick(step) {
    if (this.done.peek()[step] || !this.app.mine) return;
    this.done.value = { ...this.done.peek(), [step]: true };
    this.app.mine.set(KEY, this.done.value);
  }
}

/** Shown until all are done or dismissed. `agent`: the agent to ask. */
function FirstSteps({ app, steps, agent }) {
  const done = steps.done.value;
  const places = {
    ask: agent && (() => app.talkTo(agent)),
    look: () => toTheLatest(app),
    control: () => app.router.go("control"),
    make: app.state.owner.value && (() => app.router.go("agent")),
  };
  const offered = Object.keys(places).filter((step) => places[step]);
  if (done.hidden || offered.every((step) => done[step])) return null;
  return html`<section class="steps-first" aria-label=${t.home.steps.title}>
    <div class="section"><h2>${t.home.steps.title}</h2>
      <button type="button" class="plain small" onClick=${() => (steps.tick("hidden"), focusView(true))}>
        ${t.home.steps.hide}</button></div>
    <ol>${offered.map((step) => html`<li key=${step}>
      <button type="button" class="list-row" onClick=${places[step]} data-done=${done[step] ? "" : null}>
        <span class="tick">${done[step] && html`<${Icon} name="check" size=${14} />`}</span>
        <span>${t.home.steps[step]}${done[step] && html`<span class="hidden-text">, ${t.home.steps.done}</span>`}</span>
      </button></li>`)}</ol>
  </section>`;
}

/** To the diagram of the latest answer; without one, to the network picture. */
function toTheLatest(app) {
  const all = app.state.byActivity.peek().map(({ latest }) => latest);
  const answer = all.find((message) => message?.sender_kind === "agent");
  if (answer) app.router.go("interaction", [answer.interaction_id]);
  else app.router.go("network");
}
