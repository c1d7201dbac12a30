// Below the reader's own message that woke no agent: a button for each agent to ask.
import { html } from "../../core/ui.js";
import { ask } from "../../parts/ask.js";
import { activitySigns, useWatched } from "../../parts/watched.js";
import { t } from "../../texts.js";

const AFTER_MS = 600;
const MOST = 4; // agents shown

export function Suggestions({ app, message }) {
  const { value } = useWatched(() => app.client.call("read_receipts", { id: message.id }), {
    key: message.id, after: AFTER_MS, signs: () => activitySigns(app, null),
  });
  const agents = value?.receipts.filter(({ kind }) => kind === "agent") ?? [];
  if (!agents.length || agents.some(({ woken }) => woken)) return null;
  return html`<div class="unasked">
    <p class="quiet small" role="status">${t.wakes.unasked}</p>
    <span class="buttons">${agents.slice(0, MOST).map(({ participant: id }) => html`<button type="button"
      class="small" key=${id} onClick=${() => ask(app, message, id)}>${t.wakes.ask(id)}</button>`)}</span>
  </div>`;
}
