// Places that others and the writer have changed differently, side by side, with a choice for each.
import { visible } from "../../core/markdown.js";
import { html, useLayoutEffect, useRef, useState } from "../../core/ui.js";
import { joined } from "./merge.js";
import { words } from "./texts.js";

const text = words.conflict;
const CHOICES = ["theirs", "mine", "both"];

/** @param conflict  {parts, version}: of merge, and the version that stands now. */
export function Conflicts({ conflict: { parts, version }, take }) {
  const places = parts.filter(({ conflict }) => conflict);
  const [choices, setChoices] = useState(() => places.map(() => "mine"));
  const heading = useRef(null);
  useLayoutEffect(() => heading.current.focus(), [parts]);
  const choose = (n, choice) => setChoices(choices.map((each, at) => (at === n ? choice : each)));
  return html`<section class="conflicts" aria-labelledby="conflicts">
    <h2 id="conflicts" tabindex="-1" ref=${heading}>${text.title}</h2>
    <p role="alert">${text.text}</p>
    ${places.map((place, n) => html`<${Place} key=${n} n=${n} of=${places.length} version=${version}
      place=${place.conflict} choice=${choices[n]} choose=${(choice) => choose(n, choice)} />`)}
    <div class="buttons">
      <button type="button" class="primary"
        onClick=${() => take({ text: joined(parts, choices), version })}>${text.take}</button>
    </div>
  </section>`;
}

function Place({ n, of, version, place, choice, choose }) {
  const titles = { theirs: text.theirs(version), mine: text.mine, both: text.both };
  return html`<fieldset class="conflict">
    <legend>${text.place(n + 1, of)}</legend>
    <details><summary>${text.was}</summary><${Lines} lines=${place.was} /></details>
    <div class="sides">
      ${["theirs", "mine"].map((side) => html`<div key=${side} class=${side} data-chosen=${choice === side}>
        <b class="small">${titles[side]}</b><${Lines} lines=${place[side]} /></div>`)}
    </div>
    <div class="choice">
      ${CHOICES.map((each) => html`<label key=${each}>
        <input type="radio" name=${`place-${n}`} checked=${choice === each} onChange=${() => choose(each)} />
        ${titles[each]}</label>`)}
    </div>
  </fieldset>`;
}

function Lines({ lines }) {
  if (!lines.length) return html`<p class="quiet small">${text.gone}</p>`;
  return html`<pre tabindex="0" dir="auto">${visible(lines.join("\n"))}</pre>`;
}
