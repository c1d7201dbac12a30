// Who somebody is, at a glance: initials on a colour that is always theirs.
import { html, useComputed } from "../core/ui.js";
import { Presence } from "./presence.js";

/** 0 to 7, the same for a name for ever: for `hue-n` classes and `--hue-n` colours. */
export function hueOf(id) {
  let hash = 0x811c9dc5;
  for (const char of id) hash = Math.imul(hash ^ char.codePointAt(0), 0x01000193) >>> 0;
  return (Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d) >>> 0) >>> 29;
}

export function initialsOf(id) {
  const words = id.split(/[-_]+/).filter(Boolean);
  const picked = words.length > 1 ? words[0][0] + words[1][0] : (words[0] ?? id).slice(0, 2);
  return picked.toUpperCase();
}

/** `size` in rem; `presence`: with the dot that says whether they are here. */
export function Avatar({ app, id, size = 1.5, presence = false }) {
  const kind = useComputed(() => app.state.participant(id)?.kind ?? "human").value;
  return html`<span class=${`avatar ${kind} hue-${hueOf(id)}`} style=${{ "--size": `${size}rem` }}
    aria-hidden="true">${initialsOf(id)}${presence && html`<${Presence} app=${app} id=${id} />`}</span>`;
}
