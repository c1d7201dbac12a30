// The reactions to a message: each emoji with its count, the reader's own highlighted.
import { visible } from "../../core/markdown.js";
import { html, useLayoutEffect, useMemo } from "../../core/ui.js";
import { Icon } from "../../parts/icon.js";
import { words } from "./texts.js";

const NAMED = 8;

export function Row({ store, message: { id }, pick, message }) {
  const entry = useMemo(() => store.hold(id), [id]);
  useLayoutEffect(() => () => store.release(id), [id]); // also releases one that was never painted
  const found = entry.reactions.value;
  const problem = entry.problem.value;
  if (!found.length && !problem) return null;
  return html`
    ${found.length > 0 && html`<ul class="reactions" aria-label=${words.list}>
      ${found.map((each) => html`<li key=${each.emoji}>
        <${One} reaction=${each} toggle=${pick && (() => store.toggle(id, each.emoji))} /></li>`)}
      ${pick && html`<li><button type="button" class="reaction add" aria-label=${words.add} title=${words.add}
        onClick=${(event) => pick(message, event.currentTarget)}><${Icon} name="smile" size=${15} /></button></li>`}
    </ul>`}
    ${problem && html`<p class="note danger small" role="alert">${problem}</p>`}
  `;
}

function One({ reaction: { emoji, count, who, more, mine }, toggle }) {
  const some = who.slice(0, NAMED);
  const others = count - some.length;
  const names = others > 0 || more ? words.and(some.join(", "), others) : some.join(", ");
  const told = words.told(words.emoji[emoji] ?? visible(emoji), count, names, mine);
  const inside = html`<span aria-hidden="true">${visible(emoji)}</span>
    <span class="number" aria-hidden="true">${count}</span>`;
  if (!toggle) return html`<span class="reaction" role="img" aria-label=${told} title=${names}>${inside}</span>`;
  return html`<button type="button" class="reaction" aria-pressed=${mine} aria-label=${told} title=${names}
    onClick=${toggle}>${inside}</button>`;
}
