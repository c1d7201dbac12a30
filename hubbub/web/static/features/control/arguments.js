// The arguments of a call, to be read by somebody who answers for them: exactly what would be sent, and
// what somebody has changed of it.
import { html } from "../../core/ui.js";
import { AsJson } from "../../parts/as-json.js";
import { diffLines, folded } from "../../parts/diff.js";
import { later } from "../../texts-later.js";

/** Each by its name, text as it is, the rest as JSON. */
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

/** The text with what cannot be seen written out as JSON has it: nothing hides from who decides. */
export function seen(text) {
  const written = (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return text.replace(/[^\P{C}\n\t]/gu, (hidden) => hidden.split("").map(written).join(""));
}

/** Whether there is a whole number in it that is too large for a browser to tell exactly. */
export function isRounded(value) {
  if (typeof value === "number") return Number.isInteger(value) && !Number.isSafeInteger(value);
  return typeof value === "object" && value !== null && Object.values(value).some(isRounded);
}

/** Names of arguments in which two differ. */
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
