// What features have to add to a message, in one of its places.
import { html } from "../core/ui.js";

/**
 * `slot` is "name", "meta", "action" or "below". `about` is {message, thread}; below one of
 * somebody's also `follows`: the message above it in the same run, or null where a run begins.
 */
export function Marks({ app, slot, ...about }) {
  return app.add.marks.items.value
    .filter((mark) => mark.slot === slot)
    .map((mark) => html`<${mark.view} key=${mark.key} app=${app} ...${about} />`);
}
