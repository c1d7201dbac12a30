// A few emoji, and a field for any other. Arrows move, Escape closes.
import { html, useLayoutEffect, useRef, useState } from "../../core/ui.js";
import { place } from "../../parts/menu.js";
import { words } from "./texts.js";

const ALL = Object.keys(words.emoji);
const COLUMNS = 8;
const STEPS = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: COLUMNS, ArrowUp: -COLUMNS };

export function Picker({ store, message, at, close }) {
  const box = useRef(null);
  const [other, setOther] = useState("");
  const before = useRef(document.activeElement);
  const leave = () => {
    close();
    const back = before.current?.isConnected ? before.current : at;
    back?.closest?.("[data-message]")?.focus({ preventScroll: true });
  };
  const choose = (emoji) => {
    leave();
    store.toggle(message.id, emoji);
  };
  useLayoutEffect(() => {
    const { current } = box;
    current.showPopover();
    if (at?.isConnected) place(current, at);
    current.querySelector("button").focus();
    const outside = (event) => !current.contains(event.target) && close();
    document.addEventListener("pointerdown", outside, true);
    window.addEventListener("resize", close);
    return () => {
      document.removeEventListener("pointerdown", outside, true);
      window.removeEventListener("resize", close);
    };
  }, []);
  const submit = (event) => {
    event.preventDefault();
    if (other.trim()) choose(other.trim());
  };
  return html`<div ref=${box} class="menu picker" role="dialog" aria-label=${words.picker} popover="manual"
    onKeyDown=${(event) => keyed(event, box.current, leave)}>
    <div class="grid">
      ${ALL.map((emoji) => html`<button key=${emoji} type="button" class="icon" aria-label=${words.emoji[emoji]}
        title=${words.emoji[emoji]} onClick=${() => choose(emoji)}>${emoji}</button>`)}
    </div>
    <form onSubmit=${submit}>
      <input name="emoji" maxlength="64" autocomplete="off" aria-label=${words.other} placeholder=${words.other}
        value=${other} onInput=${(event) => setOther(event.target.value)} />
      <button type="submit" disabled=${!other.trim()}>${words.use}</button>
    </form>
  </div>`;
}

function keyed(event, box, leave) {
  if (event.key === "Escape") {
    event.preventDefault();
    event.stopPropagation();
    return leave();
  }
  const step = STEPS[event.key];
  const buttons = [...box.querySelectorAll(".grid button")];
  const at = buttons.indexOf(document.activeElement);
  if (event.key === "Tab") return keepInside(event, box);
  if (!step || at === -1) return;
  event.preventDefault();
  event.stopPropagation();
  buttons[(at + step + buttons.length) % buttons.length].focus();
}

/** Tab cycles between the emoji (as one stop), the field and its button. */
function keepInside(event, box) {
  const stops = [box.querySelector(".grid button"), ...box.querySelectorAll("input, form button:enabled")];
  const now = document.activeElement;
  const at = Math.max(0, stops.indexOf(now));
  event.preventDefault();
  event.stopPropagation();
  stops[(at + (event.shiftKey ? -1 : 1) + stops.length) % stops.length].focus();
}
