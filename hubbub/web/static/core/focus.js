// Keyboard focus after navigation.

/** Touch devices: an on-screen keyboard would cover the content. */
const fingers = () => matchMedia("(pointer: coarse)").matches;

/**
 * Focus a newly shown view: its text field if it has one, otherwise the view itself. A view can
 * choose another element with `data-focus`. Focus is never taken out of a dialog.
 */
export function focusView(toTheTop = false) {
  const middle = document.getElementById("middle");
  if (!middle || document.querySelector("dialog[open]")) return;
  /** @type {HTMLElement | null} */
  const place = middle.querySelector("[data-focus]") ?? middle.querySelector("textarea[name=text]");
  const target = toTheTop || (fingers() && place?.tagName === "TEXTAREA") ? middle : (place ?? middle);
  target.focus({ preventScroll: true });
}

let outside = null; // the focused element before the right column was opened

/**
 * Focus the heading of the right column. The returned function restores the focus when the column is
 * closed.
 */
export function returnFocus(heading) {
  const before = document.activeElement;
  if (!before?.closest(".right")) outside = before;
  heading.focus({ preventScroll: true });
  return () => onceGone(outside);
}

/**
 * Focus `target` after the next render, unless another element has the focus by then.
 * Use it in cleanups of layout effects: those of other effects do not run for an element that was
 * removed before it was painted, for example by a quick Escape.
 */
export function onceGone(target) {
  queueMicrotask(() => {
    const lost = document.activeElement === document.body || !document.activeElement?.isConnected;
    if (lost && target?.isConnected) target.focus({ preventScroll: true });
  });
}

/**
 * Restore the focus when the focused element disappears, moves, or was disabled for a while: keys
 * pressed afterwards would be commands.
 */
export function keepFocus() {
  let last = null;
  let around = null; // its dialog or right column
  document.addEventListener("focusin", ({ target }) => {
    last = /** @type {HTMLElement} */ (target);
    around = last.closest("dialog, .right");
  });
  document.addEventListener("pointerdown", () => (last = null));
  const restore = () => {
    if (!last || document.activeElement !== document.body) return;
    if (last.isConnected) last.focus({ preventScroll: true });
    else if (around?.isConnected) around.querySelector("[data-focus], [tabindex], button").focus();
    else focusView();
  };
  const isAbout = ({ type, target, removedNodes }) =>
    type === "attributes" ? target === last : [...removedNodes].some((node) => node.contains(last));
  new MutationObserver((records) => {
    if (last && records.some(isAbout)) setTimeout(restore); // after what chooses a better place
  }).observe(document.body, { subtree: true, childList: true, attributeFilter: ["disabled"] });
}
