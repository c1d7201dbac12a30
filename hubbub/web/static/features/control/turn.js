// In a turn's panel, while it runs: what it waits for, and the way to stop it.
import { html } from "../../core/ui.js";
import { Icon } from "../../parts/icon.js";
import { t } from "../../texts.js";
import { ApprovalCards } from "./approval-card.js";

export function TurnControls({ app, id }) {
  const { control, activities } = app.state;
  const asked = control.askedBy(id);
  const all = [...activities.value.values()].flatMap((threads) => [...threads]);
  const doing = all.find(([, { turn }]) => turn === id);
  const stop = () => app.run("stop", { thread: doing?.[0] ?? null, turn: id });
  return html`
    <${ApprovalCards} app=${app} approvals=${asked} />
    <div class="buttons"><button type="button" class="danger" onClick=${stop}>
      <${Icon} name="stop" size=${16} />${t.control.stop}</button></div>
  `;
}
