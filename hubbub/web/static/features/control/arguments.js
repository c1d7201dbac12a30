// The arguments of a call, for a person who decides about it: exactly as they would be sent, with any
// changes.
import { html } from "../../core/ui.js";
import { AsJson } from "../../parts/as-json.js";
import { diffLines, folded } from "../../parts/diff.js";
import { later } from "../../texts-later.js";

/** Each argument by name, text unchanged, anything else as JSON. */
export function Arguments({ title, value }) {
  const names = Object.keys(value);
  return html`
    <section class="arguments" aria-label=${title}>
      <h4>${title}</h4>
      ${!names.length && html`<p class="quiet">${later.approvals.noArguments}</p>`}
      <dl>
        ${names.map((name) => html`<div key=${name}>
          <dt>${seen(name)}</dt><dd><${Value} value=${value[name]} /></dd>
        </div>`)}
      </dl>
      ${isRounded(value) && html`<p class="note warn">${later.approvals.rounded}</p>`}
      ${names.length > 0 && html`<${AsJson} title=${later.approvals.asJson} text=${() => seen(JSON.stringify(value, null, 2))} />`}
    </section>
  `;
}

function Value({ value }) {
  const isText = typeof value === "string";
  const text = seen(isText ? value : JSON.stringify(value, null, 2));
  return html`<pre class=${isText ? "is-text" : "is-data"} tabindex="0" dir="auto">${text}</pre>`;
}

/** The text with invisible characters escaped as in JSON, so that nothing is hidden from the reader. */
export function seen(text) {
  const written = (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return text.replace(/[^\P{C}\n\t]/gu, (hidden) => hidden.split("").map(written).join(""));
}

/** Whether it contains an integer too large for exact display in a browser. */
export function isRounded(value) {
  if (typeof value === "number") return Number.isInteger(value) && !Number.isSafeInteger(value);
  return typeof value === "object" && value !== null && Object.values(value).some(isRounded);
}

/** Names of the arguments that differ. */
export function changedNames(before, after) {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return names.filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]));
}

/** Before and after. */
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
