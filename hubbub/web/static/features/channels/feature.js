// Channels: create, find, join, leave.
import { rootOf } from "../../core/ids.js";
import { html } from "../../core/ui.js";
import { dialogOf } from "../../parts/dialog.js";
import { Icon } from "../../parts/icon.js";
import { lazy } from "../../parts/lazy.js";
import { t } from "../../texts.js";
import { create, join, leave } from "./actions.js";

const Browse = lazy(() => import("./browse.js").then((module) => module.Browse));
const Create = lazy(() => import("./create.js").then((module) => module.Create));

export default function channels(app) {
  app.add.notes.add({ order: 10, view: Outside });
  const browsing = dialogOf(app, Browse);
  const creating = dialogOf(app, Create);
  const group = t.groups.threads;
  app.add.commands.add({
    id: "channel-browse", title: t.sidebar.browse, icon: "compass", group,
    run: () => (browsing.value = {}),
  });
  app.add.commands.add({
    id: "channel-create", title: t.sidebar.createChannel, slash: "create", hint: t.channels.createHint,
    icon: "plus", group,
    run: (context, rest = "") => {
      const [name, ...words] = rest.trim().replace(/^#/, "").split(/\s+/);
      if (!name) return (creating.value = {});
      return app.tried(() => create(app, { name, description: words.join(" ") }));
    },
  });
  app.add.commands.add({
    id: "channel-join", title: t.channels.join, slash: "join", hint: t.channels.nameHint, icon: "hash", group,
    run: (context, rest = "") => {
      const name = rest.trim().replace(/^#/, "");
      return name ? join(app, name) : (browsing.value = {});
    },
  });
  app.add.commands.add({
    id: "channel-leave", title: t.channels.leave, slash: "leave", icon: "leave", group,
    when: ({ thread }) => thread !== null && rootOf(thread).startsWith("channel."),
    run: ({ thread }, rest = "") => leave(app, rest.trim().replace(/^#/, "") || rootOf(thread).slice(8)),
  });
}

// Above the composer of a channel the reader has not joined, for example after following a link.

function Outside({ app, thread }) {
  const [kind, name] = thread.root.split(".");
  if (kind !== "channel") return null;
  const channel = app.state.channels.value.get(name);
  if (channel?.joined) return null;
  return html`<div class="note outside" role="status">
    <${Icon} name="hash" size=${16} />
    <span>${channel ? t.channels.outside(name) : t.channels.unknown(name)}</span>
    ${channel &&
    html`<button class="small" onClick=${() => join(app, name)}>${t.channels.joinShort}</button>`}
  </div>`;
}
