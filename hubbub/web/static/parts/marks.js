// The features' additions to a message, in one of its slots.
import { html } from "../core/ui.js";

/**
 * `slot` is "name", "meta", "action" or "below". `about` is {message, thread}; for "below" also
 * `follows`: the previous message of the same sender's run, or null at its start.
 */
export function Marks({ app, slot, ...about }) {
  return app.add.marks.items.value
    .filter((mark) => mark.slot === slot)
    .map((mark) => html`<${mark.view} key=${mark.key} app=${app} ...${about} />`);
}
