// What can be completed: @participants, #channels, /commands.
import { readersOf } from "../../core/delivery.js";
import { t } from "../../texts.js";

export function addSources(app) {
  app.add.completions.add({ trigger: "@", suggest: (_, thread) => participants(app, thread) });
  app.add.completions.add({ trigger: "#", suggest: () => channels(app) });
  app.add.completions.add({ trigger: "/", suggest: (_, thread) => commands(app, thread) });
}

/** Those of the thread first, and of them those who are here. */
function participants(app, thread) {
  const me = app.state.me.peek();
  const readers = new Set(readersOf(app.state, thread.id, me));
  const order = ({ id, present }) => (readers.has(id) ? 0 : 2) + (present ? 0 : 1);
  return [...app.state.participants.peek().values()]
    .filter(({ id }) => id !== me)
    .sort((a, b) => order(a) - order(b) || (a.id < b.id ? -1 : 1))
    .map(({ id, card }) => ({
      value: id, label: id, who: id,
      hint: [card?.name && app.state.nameOf(id), card?.description].filter(Boolean).join(" · "),
      also: card?.name ?? "",
      note: readers.has(id) ? "" : t.composer.notHere,
    }));
}

function channels(app) {
  return [...app.state.channels.peek().values()]
    .sort((a, b) => b.joined - a.joined || (a.name < b.name ? -1 : 1))
    .map(({ name, description, joined }) => ({
      value: name, label: `#${name}`, hint: description ?? "", note: joined ? "" : t.composer.notJoined,
    }));
}

function commands(app, thread) {
  const context = { thread: thread.id, message: null, text: "" };
  return [...app.add.commands]
    .filter((command) => command.slash && (!command.when || command.when(context)))
    .map(({ slash, hint, title }) => ({ value: slash, label: `/${slash}`, hint: hint ?? title, note: "" }));
}
