// The diagram or the table of a story, whichever the reader wants.
import { html } from "../../core/ui.js";
import { t } from "../../texts.js";
import { Diagram } from "./diagram.js";
import { SequenceTable } from "./table.js";

const KEY = "sequence:table";

/** A switch for the title's row. `asTable` is a signal that both share. */
export function Switch({ app, asTable }) {
  const choose = (table) => {
    asTable.value = table;
    app.storage.set(KEY, table);
  };
  const button = (table, text) => html`
    <button type="button" aria-pressed=${asTable.value === table} onClick=${() => choose(table)}>
      ${text}
    </button>
  `;
  return html`
    <div class="choice" role="group" aria-label=${t.interaction.shownAs}>
      ${button(false, t.interaction.asDiagram)}${button(true, t.interaction.asTable)}
    </div>
  `;
}

export const prefersTable = (app) => app.storage.get(KEY, false);

/** `view` and `args` are where one is: what is opened stays beside it. */
export function Sequence({ app, story, asTable, view, args }) {
  const here = (kind, id) => app.router.href(view, args, { kind, id });
  const Shown = asTable.value ? SequenceTable : Diagram;
  return html`<${Shown} app=${app} story=${story} here=${here} />`;
}
