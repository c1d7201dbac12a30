// In the composer: a button that attaches files, drag and drop, paste, and the list of attachments.
import { visible } from "../../core/markdown.js";
import { html, useEffect, useRef, useState } from "../../core/ui.js";
import { Icon } from "../../parts/icon.js";
import { carriesFiles } from "./guard.js";
import { percent, sizeOf } from "./size.js";
import { words } from "./texts.js";

export function Attach({ tray, thread }) {
  const field = useRef(null);
  const [over, setOver] = useState(false); // files are dragged over the conversation
  const take = (files) => tray.add(thread.id, files);
  useEffect(() => takeFiles(field.current.closest("main"), take, setOver), [thread.id]);
  const choose = ({ currentTarget }) => {
    take([...currentTarget.files]);
    currentTarget.value = ""; // allow choosing the same file again
  };
  return html`
    <input type="file" multiple hidden ref=${field} onChange=${choose} />
    <button type="button" class="icon" aria-label=${words.attach} title=${words.attach}
      onClick=${() => field.current.click()}><${Icon} name="clip" /></button>
    ${over && html`<div class="dropping" aria-hidden="true">${words.drop}</div>`}
  `;
}

/** Accept files dropped on `place` or pasted there. Returns a function that stops it. */
function takeFiles(place, take, held) {
  const listen = {
    dragover: (event) => {
      if (!carriesFiles(event)) return;
      event.preventDefault();
      event.dataTransfer.dropEffect = "copy";
      held(true);
    },
    dragleave: (event) => !place.contains(event.relatedTarget) && held(false),
    drop: (event) => {
      if (!carriesFiles(event)) return;
      event.preventDefault();
      held(false);
      take([...event.dataTransfer.files]);
    },
    paste: (event) => {
      const { files, types } = event.clipboardData;
      if (!files.length || types.includes("text/plain")) return; // office programs put text and an image on the clipboard
      event.preventDefault();
      take([...files]);
    },
  };
  for (const [type, listener] of Object.entries(listen)) place.addEventListener(type, listener);
  return () => {
    for (const [type, listener] of Object.entries(listen)) place.removeEventListener(type, listener);
  };
}

/** The attachments of the next message. */
export function Along({ tray, thread }) {
  const items = tray.of(thread.id);
  if (!items.length) return null;
  return html`<ul class="tray" aria-label=${words.tray}>
    ${items.map((item) => html`<${Item} key=${item.key} tray=${tray} thread=${thread.id} item=${item} />`)}
  </ul>`;
}

function Item({ tray, thread, item }) {
  const { key, size, state, sent, problem } = item;
  const name = visible(item.name);
  const done = percent(sent, size);
  const isComing = state === "sending" || state === "waiting";
  const label = isComing ? words.cancel(name) : words.take(name);
  return html`<li data-state=${state}>
    <${Icon} name=${state === "failed" ? "warning" : "document"} size=${16} />
    <span class="cut name" dir="auto" title=${name}>${name}</span>
    <span class="quiet small">${sizeOf(size)}</span>
    ${state === "waiting" && html`<span class="quiet small">${words.waiting}</span>`}
    ${state === "sending" && html`<progress max="100" value=${done} aria-label=${name}>${done} %</progress>
      <span class="number small">${done} %</span>`}
    ${state === "there" && html`<${Icon} name="check" size=${14} /><span class="hidden-text">${words.there}</span>`}
    ${problem && html`<span class="problem" role="alert">${problem}</span>`}
    ${state === "failed" && problem !== words.lost && problem !== words.nothing &&
    html`<button type="button" class="small" onClick=${() => tray.retry(thread, key)}>${words.retry}</button>`}
    <button type="button" class="icon small" aria-label=${label} title=${label}
      onClick=${() => tray.remove(thread, key)}><${Icon} name="close" size=${14} /></button>
  </li>`;
}
