// Above the composer of a channel that one is not in, as links may lead there: why nothing is here.
import { html } from "../../core/ui.js";
import { Icon } from "../../parts/icon.js";
import { t } from "../../texts.js";
import { join } from "./actions.js";

export function Outside({ app, thread }) {
  const [kind, name] = thread.root.split(".");
  if (kind !== "channel") return null;
  const channel = app.state.channels.value.get(name);
  if (channel?.joined) return null;
  return html`<div class="note outside" role="status">
    <${Icon} name="hash" size=${16} />
    <span>${channel ? t.channels.outside(name) : t.channels.unknown(name)}</span>
    ${channel &&
    html`<button class="small" onClick=${() => join(app, name)}>${t.channels.joinShort}</button>`}
  </div>`;
}
