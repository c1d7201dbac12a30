// Helpers for text fields.

/** Whether Enter sends. On an on-screen keyboard it starts a new line: there is a send button. */
export function sends({ shiftKey, ctrlKey, metaKey }) {
  return ctrlKey || metaKey || !(shiftKey || matchMedia("(pointer: coarse)").matches);
}

/** Fit the height to the content, up to a part of the window. */
export function fit(field, part = 0.4) {
  const { style } = field;
  style.height = "auto";
  style.height = `${Math.min(field.scrollHeight + 2, Math.round(innerHeight * part))}px`;
}

/** Insert a participant's name into the open composer. */
export function mention(id) {
  /** @type {HTMLTextAreaElement | null} */
  const composer = document.querySelector("textarea[name=text]");
  if (!composer) return;
  const gap = composer.value && !/\s$/.test(composer.value) ? " " : "";
  composer.focus();
  composer.setRangeText(`${gap}@${id} `, composer.value.length, composer.value.length, "end");
  composer.dispatchEvent(new Event("input", { bubbles: true }));
}
