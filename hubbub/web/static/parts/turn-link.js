// A link to a turn's record; plain text for readers who are not owners.
import { html } from "../core/ui.js";

export function TurnLink({ app, id, children }) {
  const inside = children ?? id;
  if (!app.state.owner.value) return html`<span class="turn-id">${inside}</span>`;
  return html`<a class="turn-id" href=${app.router.href("turn", [id])}>${inside}</a>`;
}
