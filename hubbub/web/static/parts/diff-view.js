// The differences between two texts, line by line.
import { visible } from "../core/markdown.js";
import { html, useMemo, useState } from "../core/ui.js";
import { t } from "../texts.js";
import { diffLines, folded } from "./diff.js";

const PAGE = 500; // lines rendered at once
const LONGEST = 1_000_000; // characters of both texts up to which they are compared by line

/** Two texts compared by line, under a title; nothing if both are empty. */
export function DiffView({ title, a, b }) {
  if (!a && !b) return null;
  return html`
    <h2>${title}</h2>
    ${a === b
      ? html`<p class="quiet">${t.turns.same}</p>`
      : a.length + b.length > LONGEST
        ? html`<p class="quiet">${t.turns.tooLong}</p>`
        : html`<${Diff} a=${a} b=${b} />`}
  `;
}

function Diff({ a, b }) {
  const [most, setMost] = useState(PAGE);
  const lines = useMemo(() => folded(diffLines(a, b)), [a, b]);
  return html`
    <div class="diff" tabindex="0" role="region" aria-label=${t.turns.difference}>
      ${lines.slice(0, most).map((line, at) =>
        line.kind === "gap"
          ? html`<${Gap} key=${at} lines=${line.lines} />`
          : html`<${DiffLine} key=${at} line=${line} />`,
      )}
      ${lines.length > most &&
      html`<button type="button" class="gap" onClick=${() => setMost(most + PAGE)}>${t.turns.more}</button>`}
    </div>
  `;
}

function Gap({ lines }) {
  const [shown, setShown] = useState(0);
  const left = lines.length - shown;
  return html`
    ${lines.slice(0, shown).map((line) => html`<${DiffLine} line=${line} />`)}
    ${left > 0 &&
    html`<button type="button" class="gap" onClick=${() => setShown(shown + PAGE)}>
      ${t.turns.equal(left)}
    </button>`}
  `;
}

export function DiffLine({ line: { kind, line } }) {
  const mark = { in: "+", out: "−", same: " " }[kind];
  const text = html`<span class="sign" aria-hidden="true">${mark}</span>${visible(line) || " "}`;
  if (kind === "in") return html`<ins class="line">${text}</ins>`;
  if (kind === "out") return html`<del class="line">${text}</del>`;
  return html`<span class="line">${text}</span>`;
}
