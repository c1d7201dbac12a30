// Beside the activity of agents in a thread: how the next message reaches them, and a stop button.
import { html } from "../../core/ui.js";
import { Icon } from "../../parts/icon.js";
import { Menu } from "../../parts/menu.js";
import { later } from "../../texts-later.js";

const MODES = [null, "queue", "steer", "interrupt"];

export function Work({ app, thread, agents }) {
  const { control } = app.state;
  const names = agents.map(([id]) => id).join(", ");
  const isSpeaking = app.state.takesPart(thread.id) && !control.voiceIn(thread.id);
  const turn = agents.length === 1 ? agents[0][1].turn : null;
  const stop = () => app.run("stop", { thread: thread.id, turn, agent: turn ? agents[0][0] : null });
  return html`<div class="work">
    ${isSpeaking && html`<${Mode} control=${control} thread=${thread.id} />`}
    <button type="button" class="small danger" aria-label=${later.stop.shortOf(names)}
      title=${later.stop.shortOf(names)} onClick=${stop}>
      <${Icon} name="stop" size=${14} />${later.stop.short}</button>
  </div>`;
}

function Mode({ control, thread }) {
  const { label, short, long } = later.modes;
  const mode = control.modes.value.get(thread) ?? null;
  const items = MODES.map((each) => ({
    title: long[each ?? "none"],
    checked: each === mode,
    run: () => control.choose(control.modes, thread, each),
  }));
  return html`<${Menu} label=${`${label}: ${short[mode ?? "none"]}`} items=${items}
    className=${mode ? "small mode chosen" : "small plain mode"}>
    <span class="cut">${short[mode ?? "none"]}</span><${Icon} name="down" size=${12} />
  <//>`;
}
