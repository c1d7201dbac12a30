// The completions, above the composer: a listbox whose active option the text field names.
import { html, useLayoutEffect, useRef } from "../../core/ui.js";
import { Avatar } from "../../parts/avatar.js";
import { t } from "../../texts.js";

export const LIST = "completions";
export const optionId = (n) => `completion-${n}`;

export function CompletionList({ app, items, active, choose }) {
  const list = useRef(null);
  useLayoutEffect(() => list.current?.children[active]?.scrollIntoView({ block: "nearest" }), [active]);
  return html`
    <ul class="completions" id=${LIST} role="listbox" aria-label=${t.composer.completions} ref=${list}
      hidden=${items.length === 0}>
      ${items.map((item, n) => html`<li key=${item.value} id=${optionId(n)} role="option"
        aria-selected=${n === active} onPointerDown=${(event) => (event.preventDefault(), choose(item))}>
        ${item.who && html`<${Avatar} app=${app} id=${item.who} size=${1.5} presence />`}
        <b>${item.label}</b>
        <span class="hint cut">${item.hint}</span>
        ${item.note && html`<span class="note-text">${item.note}</span>`}
      </li>`)}
    </ul>
  `;
}
