// The reader's own menu, at the right of the bar: who one is, and the commands with a `menu` number.
import { html } from "../../core/ui.js";
import { Avatar } from "../../parts/avatar.js";
import { Menu } from "../../parts/menu.js";
import { shownKeys } from "../../core/keys.js";
import { t } from "../../texts.js";

export function OwnMenu({ app }) {
  const me = app.state.me.value;
  return html`<${Menu} label=${t.appearance.menu(me)} items=${() => itemsOf(app, me)}>
    <${Avatar} app=${app} id=${me} size=${1.625} />
  </${Menu}>`;
}

function itemsOf(app, me) {
  const commands = [...app.add.commands].filter((command) => command.menu !== undefined);
  const items = commands.sort((a, b) => a.menu - b.menu).map((command) => ({
    title: command.title,
    icon: command.icon,
    keys: command.keys && shownKeys([command.keys].flat()[0]).flat().join(" "),
    danger: command.danger,
    run: () => app.run(command.id),
  }));
  return [
    { heading: t.appearance.joinedAs(me) },
    { title: t.appearance.profile, icon: "person", run: () => app.open("participant", me) },
    ...items.slice(0, -1),
    { line: true },
    ...items.slice(-1),
  ];
}
