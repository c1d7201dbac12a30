// An avatar: initials on a picture derived from the id.
import { hashOf } from "../core/names.js";
import { html, useComputed } from "../core/ui.js";
import { Presence } from "./presence.js";

/** 0 to 7, always the same for an id: for `hue-n` classes and `--hue-n` colours. */
export const hueOf = (id) => hashOf(id) >>> 29;

export function initialsOf(name) {
  const words = name.split(/[-_\s]+/).filter(Boolean);
  const letters = (words.length > 1 ? [[...words[0]][0], [...words[1]][0]] : [...(words[0] ?? name)].slice(0, 2)).join("");
  return letters.toUpperCase();
}

/** `size` in rem; `presence`: with a presence dot. */
export function Avatar({ app, id, size = 1.5, presence = false }) {
  const kind = useComputed(() => app.state.participant(id)?.kind ?? "human").value;
  const name = useComputed(() => app.state.nameOf(id)).value;
  return html`<span class=${`avatar ${kind} hue-${hueOf(id)}`} style=${{ "--size": `${size}rem` }}
    aria-hidden="true"><${Picture} id=${id} />${initialsOf(name)}${presence && html`<${Presence} app=${app} id=${id} />`}</span>`;
}

/** A disc and a slope: 512 combinations, in eight colours. */
function Picture({ id }) {
  const bits = hashOf(`${id} `);
  const [x, y] = [1 + 2 * (bits & 3), 1 + 2 * ((bits >>> 2) & 3)];
  const radius = [1.6, 2.2, 2.8, 3.4][(bits >>> 4) & 3];
  return html`<svg viewBox="0 0 8 8"><circle cx=${x} cy=${y} r=${radius} />
    <path d="M-4 0h16v-8h-16z" transform=${`rotate(${45 * ((bits >>> 6) & 7)} 4 4) translate(0 1.2)`} /></svg>`;
}
