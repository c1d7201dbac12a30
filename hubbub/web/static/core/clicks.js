// The second click of a double click counts only on what the first one hit: by then, something else can be
// under the pointer, such as the next approval of a list or the page below a dialog.

export function watchClicks(target = window) {
  let hit = null; // by the first click
  target.addEventListener("click", (event) => {
    const { detail } = event;
    const at = /** @type {Element} */ (event.target);
    const control = at.closest("label") ?? at.closest("button, a, input, summary");
    if (detail < 2) hit = control;
    else if (control !== hit) {
      event.preventDefault();
      event.stopPropagation();
    }
  }, true);
}
