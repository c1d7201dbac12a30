// In the head of a thread: whether it is resolved, and what the reader has chosen for it.
import { html } from "../../core/ui.js";
import { Icon } from "../../parts/icon.js";
import { words } from "./texts.js";

export function Chips({ app, thread }) {
  const resolver = app.state.labels.value.get(thread.id)?.resolver;
  const choice = app.state.choiceIn(thread.id);
  return html`
    ${resolver && html`<${Chip} icon="check" title=${words.isResolved} about=${words.resolvedBy(resolver)} />`}
    ${choice === "muted" && html`<${Chip} icon="moon" title=${words.isMuted} about=${words.muted} />`}
    ${choice === "followed" && html`<${Chip} icon="bell" title=${words.isFollowed} about=${words.followed} />`}
  `;
}

function Chip({ icon, title, about }) {
  return html`<span class="chip label-chip" title=${about}><${Icon} name=${icon} size=${14} /><span>${title}</span></span>`;
}
