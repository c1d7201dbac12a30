// The arguments of a call, to be read by somebody who answers for them: exactly what would be sent.
import { html, useEffect, useRef, useState } from "../../core/ui.js";
import { highlight } from "../../parts/highlight.js";
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
      ${names.length > 0 && html`<${AsJson} value=${value} />`}
    </section>
  `;
}

function Value({ value }) {
  const isText = typeof value === "string";
  const text = seen(isText ? value : JSON.stringify(value, null, 2));
  return html`<pre class=${isText ? "is-text" : "is-data"} tabindex="0" dir="auto">${text}</pre>`;
}

function AsJson({ value }) {
  const [open, setOpen] = useState(false);
  return html`<details class="json" onToggle=${(event) => setOpen(event.currentTarget.open)}>
    <summary>${later.approvals.asJson}</summary>
    ${open && html`<${Json} text=${seen(JSON.stringify(value, null, 2))} />`}
  </details>`;
}

function Json({ text }) {
  const code = useRef(null);
  useEffect(() => {
    code.current.textContent = text; // what highlights takes the text for spans
    highlight(code.current, "json");
  }, [text]);
  return html`<pre tabindex="0"><code ref=${code}></code></pre>`;
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
