// Fields in which one writes.

/** Whether Enter sends. On a keyboard of glass it begins a line: there is a button that sends. */
export function sends({ shiftKey, ctrlKey, metaKey }) {
  return ctrlKey || metaKey || !(shiftKey || matchMedia("(pointer: coarse)").matches);
}

/** As high as what stands in it, up to a part of the window. */
export function fit(field, part = 0.4) {
  const { style } = field;
  style.height = "auto";
  style.height = `${Math.min(field.scrollHeight + 2, Math.round(innerHeight * part))}px`;
}

/** Somebody's name, into the composer that is open. */
export function mention(id) {
  /** @type {HTMLTextAreaElement | null} */
  const composer = document.querySelector("textarea[name=text]");
  if (!composer) return;
  const gap = composer.value && !/\s$/.test(composer.value) ? " " : "";
  composer.focus();
  composer.setRangeText(`${gap}@${id} `, composer.value.length, composer.value.length, "end");
  composer.dispatchEvent(new Event("input", { bubbles: true }));
}
