// Plain text of any length: long texts are folded, and very long ones rendered in pieces, since a
// browser takes seconds to lay out a prompt of 500 KB.
import { visible } from "../core/markdown.js";
import { count } from "../core/numbers.js";
import { html, useMemo, useState } from "../core/ui.js";
import { t } from "../texts.js";

const PIECE = 20_000; // characters
const FOLDED_FROM = 600;

/** The text, with its first piece rendered at once. */
export function LongText({ text }) {
  const [shown, setShown] = useState(PIECE);
  const pieces = useMemo(() => cut(text, shown), [text, shown]);
  const left = text.length - shown;
  return html`
    <div class="long-text">
      <pre tabindex="0" dir="auto">${pieces.map((piece) => html`<span>${piece}</span>`)}</pre>
      ${left > 0 &&
      html`<button type="button" onClick=${() => setShown(shown + 5 * PIECE)}>
        ${t.longText.more(count(left))}
      </button>`}
    </div>
  `;
}

/** A line that unfolds the text. */
export function Folded({ title, text, open = false }) {
  const [isOpen, setOpen] = useState(open);
  return html`
    <details class="folded" open=${isOpen} onToggle=${(event) => setOpen(event.currentTarget.open)}>
      <summary>${title} <span class="quiet">${t.longText.length(count(text.length))}</span></summary>
      ${isOpen && html`<${LongText} text=${text} />`}
    </details>
  `;
}

/** The text under its title; folded if it is long. */
export function TitledText({ title, text }) {
  if (text.length > FOLDED_FROM) return html`<${Folded} title=${title} text=${text} />`;
  return html`<div class="titled"><span class="quiet">${title}</span><${LongText} text=${text} /></div>`;
}

function cut(text, shown) {
  const pieces = [];
  for (let at = 0; at < Math.min(shown, text.length); at += PIECE) {
    pieces.push(visible(text.slice(at, Math.min(at + PIECE, shown))));
  }
  return pieces;
}
