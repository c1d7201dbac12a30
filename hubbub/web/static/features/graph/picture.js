// The network drawn: edges as lines in an SVG, nodes as links above it. Where they are is set by
// frame.js, without drawing them anew.
import { kindOf } from "../../core/ids.js";
import { html, useMemo } from "../../core/ui.js";
import { Avatar } from "../../parts/avatar.js";
import { Icon, iconOfThread } from "../../parts/icon.js";
import { Activity } from "../../parts/presence.js";
import { t } from "../../texts.js";

const FULL = 12; // messages' weight from which an edge gets no thicker

export function Picture({ app, nodes, edges, memberships }) {
  const belongs = useMemo(
    () => memberships.map(({ key, ends: [a, b] }) => html`
      <line key=${key} class="belongs" data-from=${a} data-to=${b} />`),
    [memberships],
  );
  const drawn = useMemo(
    () => nodes.map((node) => html`<${Node} key=${node.key} app=${app} node=${node} />`),
    [nodes],
  );
  return html`
    <svg width="100%" height="100%" aria-hidden="true">
      <g>${belongs}</g>
      <g>${edges.map((edge) => html`<${Edge} key=${edge.key} ...${edge} />`)}</g>
    </svg>
    <ul class="nodes" aria-label=${t.graph.nodes}>${drawn}</ul>
  `;
}

function Edge({ ends: [a, b], weight }) {
  return html`
    <line class="flow" data-from=${a} data-to=${b} stroke-width=${1 + 5 * Math.min(1, weight / FULL)}
      stroke-opacity=${0.25 + 0.65 * Math.min(1, weight)} />
  `;
}

function Node({ app, node: { key, kind, name, thread } }) {
  if (kind === "room") {
    const title = app.state.titleOf(thread);
    return html`
      <li class="node room" data-node=${key}>
        <a href=${app.router.href("thread", [thread])}>
          <${Icon} name=${iconOfThread(kindOf(thread))} size=${14} />
          <span class="cut">${title.replace(/^#/, "")}</span>
        </a>
      </li>
    `;
  }
  const here = app.state.participant(key)?.present ?? false;
  return html`
    <li class="node" data-node=${key} data-present=${here ? "" : null}>
      <a href=${app.router.href("network", [], { kind: "participant", id: key })}>
        <${Avatar} app=${app} id=${key} size=${2.25} presence=${true} />
        <span class="name">${name}</span>
        <span class="doing"><${Activity} app=${app} id=${key} /></span>
      </a>
    </li>
  `;
}
