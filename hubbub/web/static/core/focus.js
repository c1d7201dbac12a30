// Where the keyboard is after one has gone somewhere.

/** Pointers that are fingers: a keyboard on the screen would cover what one came to read. */
const fingers = () => matchMedia("(pointer: coarse)").matches;

/**
 * A view was shown: the keyboard goes where one writes there, else to the view itself. A view that
 * wants it elsewhere marks the place with `data-focus`. Nobody is taken out of a dialog.
 */
export function focusView(toTheTop = false) {
  const middle = document.getElementById("middle");
  if (!middle || document.querySelector("dialog[open]")) return;
  /** @type {HTMLElement | null} */
  const place = middle.querySelector("[data-focus]") ?? middle.querySelector("textarea[name=text]");
  const target = toTheTop || (fingers() && place?.tagName === "TEXTAREA") ? middle : (place ?? middle);
  target.focus({ preventScroll: true });
}

let outside = null; // where the keyboard was before it went to the right column

/**
 * Focus the heading of the right column; what is returned is called when the column goes, and gives
 * the focus back to where it was.
 */
export function returnFocus(heading) {
  const before = document.activeElement;
  if (!before?.closest(".right")) outside = before;
  heading.focus({ preventScroll: true });
  return () => onceGone(outside);
}

/**
 * Give `target` the focus once what is drawn anew is there, unless something else has it by then.
 * For the cleanups of layout effects: those of other effects do not run for what goes before it was
 * painted, as a quick Escape has it.
 */
export function onceGone(target) {
  queueMicrotask(() => {
    const lost = document.activeElement === document.body || !document.activeElement?.isConnected;
    if (lost && target?.isConnected) target.focus({ preventScroll: true });
  });
}
