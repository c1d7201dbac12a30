// The first steps of somebody who is new: each ticks itself once it was done, wherever that was.
import { focusView } from "../../core/focus.js";
import { effect, html, signal } from "../../core/ui.js";
import { Icon } from "../../parts/icon.js";
import { t } from "../../texts.js";

const OPERATIONS = {
  ask: ["send_text_message", "reply"],
  make: ["add_agent"],
  control: ["approve", "deny", "stop", "take_over"],
};
const LOOKS = ["turn", "interaction", "sequence"]; // views and panels
const KEY = "steps";

export class Steps {
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

/** Until all are done, or somebody has seen enough of them. `agent`: whom one could ask. */
export function FirstSteps({ app, steps, agent }) {
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

/** To what the latest answer took; without one, to the picture of the network. */
function toTheLatest(app) {
  const all = app.state.byActivity.peek().map(({ latest }) => latest);
  const answer = all.find((message) => message?.sender_kind === "agent");
  if (answer) app.router.go("interaction", [answer.interaction_id]);
  else app.router.go("network");
}
