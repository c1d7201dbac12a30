// `#/document/d3/changes/2/5`: the differences between two versions.
import { html } from "../../core/ui.js";
import { DiffLine } from "../../parts/diff-view.js";
import { Loading } from "../../parts/empty.js";
import { useWatched } from "../../parts/watched.js";
import { Title } from "./reader.js";
import { words } from "./texts.js";

export function Changes({ app, id, old, now }) {
  const found = useWatched(() => app.client.call("diff_document", { id, old, new: now }), { key: `${id} ${old} ${now}` });
  return html`
    <${Title} app=${app} id=${id} found=${found.value} />
    <div class="page document">
      <h2>${words.between(old, now)}</h2>
      <${Loading} found=${found} />
      ${found.value && html`<${Unified} diff=${found.value.diff} />`}
      ${found.value?.cut && html`<p class="quiet">${words.cut}</p>`}
    </div>
  `;
}

/** The lines of a unified diff, without its two header lines. */
function Unified({ diff }) {
  const lines = diff.split("\n").slice(2);
  if (!lines.length) return html`<p class="quiet">${words.same}</p>`;
  return html`<div class="diff changes" tabindex="0" role="region" aria-label=${words.difference}>
    ${lines.map((line, n) => html`<${Line} key=${n} line=${line} />`)}
  </div>`;
}

function Line({ line }) {
  if (line.startsWith("@@")) return html`<span class="line gap">${line.replace(/@/g, "").trim()}</span>`;
  const kind = { "+": "in", "-": "out" }[line[0]] ?? "same";
  return html`<${DiffLine} line=${{ kind, line: line.slice(1) }} />`;
}
