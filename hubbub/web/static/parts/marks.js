// What features have to add to a message, in one of its places.
import { html } from "../core/ui.js";

/** `slot` is "name", "meta", "action" or "below". */
export function Marks({ app, slot, message, thread }) {
  return app.add.marks.items.value
    .filter((mark) => mark.slot === slot)
    .map((mark) => html`<${mark.view} key=${mark.key} app=${app} message=${message} thread=${thread} />`);
}
