// What somebody has changed of the arguments of a call: before and after.
import { diffLines, folded } from "../../parts/diff.js";
import { html } from "../../core/ui.js";
import { later } from "../../texts-later.js";
import { changedNames, seen } from "./arguments.js";

export function Changes({ before, after }) {
  const names = changedNames(before, after);
  if (!names.length) return html`<p class="quiet small">${later.approvals.unchanged}</p>`;
  return html`<dl class="changes" aria-label=${later.approvals.changes}>
    ${names.map((name) => html`<div key=${name}><dt>${seen(name)}</dt>
      <dd><${Change} before=${written(before[name])} after=${written(after[name])} /></dd></div>`)}
  </dl>`;
}

const written = (value) => (value === undefined ? "" : seen(typeof value === "string" ? value : JSON.stringify(value, null, 2)));

function Change({ before, after }) {
  return folded(diffLines(before, after)).map(({ kind, line, lines }, n) => {
    if (kind === "gap") return html`<span class="quiet" key=${n}>${later.approvals.equalLines(lines.length)}</span>`;
    if (kind === "out") return line && html`<del key=${n}>${line}</del>`;
    return kind === "in" ? line && html`<ins key=${n}>${line}</ins>` : html`<span key=${n}>${line}</span>`;
  });
}
