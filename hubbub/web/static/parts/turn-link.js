// A link to a turn's record. Only owners may read those: for others it is no link.
import { html } from "../core/ui.js";

export function TurnLink({ app, id, children }) {
  const inside = children ?? id;
  if (!app.state.owner.value) return html`<span class="turn-id">${inside}</span>`;
  return html`<a class="turn-id" href=${app.router.href("turn", [id])}>${inside}</a>`;
}
