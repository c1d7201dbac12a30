// The network as a list: everybody with what they do and whom they spoke with lately.
import { html } from "../../core/ui.js";
import { Avatar } from "../../parts/avatar.js";
import { Activity, Presence } from "../../parts/presence.js";
import { t } from "../../texts.js";

export function NetworkList({ app, nodes, edges }) {
  const names = new Map(nodes.map(({ key, name }) => [key, name]));
  return html`
    <ul class="network-list">
      ${nodes.map(
        (node) => html`<${Row} key=${node.key} app=${app} node=${node} names=${names}
          edges=${edges.filter(({ ends }) => ends.includes(node.key))} />`,
      )}
    </ul>
  `;
}

function Row({ app, node: { key, kind, name, thread }, edges, names }) {
  const others = [...edges]
    .sort((a, b) => b.weight - a.weight)
    .map(({ ends }) => names.get(ends[0] === key ? ends[1] : ends[0]));
  const href =
    kind === "room"
      ? app.router.href("thread", [thread])
      : app.router.href("network", [], { kind: "participant", id: key });
  return html`
    <li>
      ${kind !== "room" && html`<${Avatar} app=${app} id=${key} />`}
      <a href=${href}>${name}</a>
      ${kind !== "room" && html`<${Presence} app=${app} id=${key} silent=${false} />`}
      ${kind === "agent" && html`<${Activity} app=${app} id=${key} />`}
      <span class="quiet">${others.length ? t.graph.spokeWith(others.join(", ")) : t.graph.quiet}</span>
    </li>
  `;
}
