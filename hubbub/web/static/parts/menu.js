// A button that opens a menu, with the keyboard interface of ARIA's menu button: arrows, Home, End,
// first letters, Escape.
import { html, useId, useLayoutEffect, useRef, useState } from "../core/ui.js";
import { Icon } from "./icon.js";

/**
 * `label` names the button, `children` is its content (three dots by default), `items` are
 * {title, icon?, run?, href?, keys?, danger?, checked?, line?, heading?}, or a function that returns them.
 */
export function Menu({ label, items, className = "icon", children }) {
  const [open, setOpen] = useState(false);
  const button = useRef(null);
  const id = useId();
  const close = () => {
    setOpen(false);
    button.current?.focus();
  };
  const key = (event) => {
    if (event.key !== "ArrowDown" || open) return;
    event.preventDefault();
    setOpen(true);
  };
  return html`
    <button ref=${button} type="button" class=${className} aria-label=${label} title=${label}
      aria-haspopup="menu" aria-expanded=${open} aria-controls=${open ? id : null}
      onClick=${() => setOpen(!open)} onKeyDown=${key}>
      ${children ?? html`<${Icon} name="more" />`}
    </button>
    ${open && html`<${Items} id=${id} label=${label} button=${button.current} close=${close}
      leave=${() => setOpen(false)} items=${typeof items === "function" ? items() : items} />`}
  `;
}

function Items({ id, label, items, button, close, leave }) {
  const menu = useRef(null);
  useLayoutEffect(() => {
    const { current } = menu;
    current.showPopover();
    place(current, button);
    (choices(current).find((each) => each.ariaChecked === "true") ?? choices(current)[0])?.focus();
    const outside = (event) => {
      if (!current.contains(event.target) && !button.contains(event.target)) leave();
    };
    document.addEventListener("pointerdown", outside, true);
    window.addEventListener("resize", leave);
    return () => {
      document.removeEventListener("pointerdown", outside, true);
      window.removeEventListener("resize", leave);
    };
  }, []);
  const key = (event) => {
    if (event.key === "Escape" || event.key === "Tab") {
      if (event.key === "Escape") event.preventDefault();
      event.stopPropagation();
      close();
      return;
    }
    const next = step(choices(menu.current), event.key);
    if (!next) return;
    event.preventDefault();
    event.stopPropagation();
    next.focus();
  };
  const run = (item) => () => {
    close();
    item.run?.();
  };
  return html`<div ref=${menu} id=${id} class="menu" role="menu" aria-label=${label} popover="manual"
    onKeyDown=${key}>
    ${items.map((item, n) => html`<${Item} key=${n} item=${item} run=${run(item)} />`)}
  </div>`;
}

function Item({ item, run }) {
  if (item.line) return html`<hr />`;
  if (item.heading) return html`<div class="heading" role="presentation">${item.heading}</div>`;
  const inside = html`
    ${item.icon && html`<${Icon} name=${item.icon} size=${16} />`}
    <span class="cut">${item.title}</span>
    ${item.keys && html`<kbd>${item.keys}</kbd>`}
    ${item.checked && html`<${Icon} name="check" size=${16} className="end" />`}`;
  if (item.href) return html`<a role="menuitem" tabindex="-1" href=${item.href} onClick=${run}>${inside}</a>`;
  const checkable = item.checked !== undefined;
  return html`<button type="button" class=${item.danger ? "danger" : ""} tabindex="-1" onClick=${run}
    role=${checkable ? "menuitemradio" : "menuitem"} aria-checked=${checkable ? String(item.checked) : null}>
    ${inside}
  </button>`;
}

const choices = (menu) => [...menu.querySelectorAll("[role^=menuitem]")];

/** The item that a key moves to, or null. */
function step(items, key) {
  const at = items.indexOf(document.activeElement);
  if (key === "ArrowDown") return items[(at + 1) % items.length];
  if (key === "ArrowUp") return items.at(at <= 0 ? -1 : at - 1);
  if (key === "Home") return items[0];
  if (key === "End") return items.at(-1);
  if (key.length !== 1 || key === " ") return null;
  const starts = (item) => item.textContent.trim().toLowerCase().startsWith(key.toLowerCase());
  return [...items.slice(at + 1), ...items.slice(0, at + 1)].find(starts) ?? null;
}

/** Below the button, or above if there is no room; always on the screen. */
export function place(menu, button) {
  const at = button.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = menu;
  const below = at.bottom + 4;
  const top = below + height <= innerHeight - 8 ? below : Math.max(8, at.top - height - 4);
  const left = at.left + width <= innerWidth - 8 ? at.left : at.right - width;
  menu.style.top = `${top}px`;
  menu.style.left = `${Math.min(Math.max(8, left), innerWidth - width - 8)}px`;
}
