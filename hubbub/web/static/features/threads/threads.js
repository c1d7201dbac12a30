// The groups of threads in the left column.
import { html } from "../../core/ui.js";
import { Icon } from "../../parts/icon.js";
import { t } from "../../texts.js";
import { Row } from "./row.js";

/** What stands right of a group's heading: {label, icon, command}. */
const TOOLS = {
  channels: [
    { label: t.sidebar.browse, icon: "compass", command: "channel-browse" },
    { label: t.sidebar.createChannel, icon: "plus", command: "channel-create" },
  ],
  direct: [{ label: t.sidebar.startDirect, icon: "plus", command: "direct-start" }],
};
const EMPTY = { channels: t.sidebar.noChannels, direct: t.sidebar.noDirect };

export function Threads({ app, column }) {
  return html`<div class="threads">
    <${Group} app=${app} column=${column} name="channels" />
    <${Group} app=${app} column=${column} name="direct" />
    <${Group} app=${app} column=${column} name="everyone" />
    <${Group} app=${app} column=${column} name="mods" />
  </div>`;
}

function Group({ app, column, name }) {
  const all = column.groups[name].value;
  const shown = column.shown[name].value;
  const folded = column.folded.value.has(name);
  const tools = TOOLS[name] ?? [];
  if (!all.length && !tools.length) return null;
  if (name === "everyone") {
    return html`<ul class="group">${shown.map((thread) => row(app, column, thread))}</ul>`;
  }
  const hidden = folded ? 0 : all.length - shown.length;
  return html`<section class="group" aria-label=${t.sidebar[name]}>
    <div class="section">
      <h2><button class="fold" aria-expanded=${!folded} onClick=${() => column.fold(name)}>
        ${t.sidebar[name]}<${Icon} name="down" size=${12} />
      </button></h2>
      ${tools.map((tool) => html`<button key=${tool.command} class="icon small" aria-label=${tool.label}
        title=${tool.label} onClick=${() => app.run(tool.command)}>
        <${Icon} name=${tool.icon} size=${16} />
      </button>`)}
    </div>
    <ul>${shown.map((thread) => row(app, column, thread))}</ul>
    ${!all.length && !folded && html`<p class="none">${EMPTY[name]}</p>`}
    ${(hidden > 0 || (column.all.value && name === "direct" && !folded)) &&
    html`<button class="plain small more" onClick=${() => (column.all.value = !column.all.value)}>
      ${hidden ? t.sidebar.more(hidden) : t.sidebar.fewer}
    </button>`}
  </section>`;
}

function row(app, column, thread) {
  return html`<${Row} key=${thread.id} app=${app} column=${column} thread=${thread} />`;
}
