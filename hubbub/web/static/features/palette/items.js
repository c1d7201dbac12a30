// The palette's items and their order. Pure, except for what an item runs.
import { membersOf } from "../../core/ids.js";
import { search } from "../../core/fuzzy.js";
import { iconOfKind, iconOfThread } from "../../parts/icon.js";
import { t } from "../../texts.js";

const KINDS = { "#": "channel", "@": "person", ">": "command" };
const RECENT_WORTH = 5; // bonus of the latest choice

/** All items: {id, kind, title, hint, icon, keys?, unread?, participant?, run}. */
export function itemsOf(app, context) {
  return [...threads(app), ...people(app), ...channels(app), ...commands(app, context)];
}

function threads(app) {
  return app.state.byActivity
    .peek()
    .filter((thread) => thread.parent === null && !isWithOne(thread.id) && isMine(app, thread))
    .map((thread) => ({
      id: `thread:${thread.id}`,
      kind: thread.kind === "channel" ? "channel" : "thread",
      title: app.state.titleOf(thread.id),
      hint: t.palette.kinds[thread.kind],
      icon: membersOf(thread.id).length ? "people" : iconOfThread(thread.kind),
      unread: thread.unread.peek(),
      run: () => app.show(thread.id),
    }));
}

const isWithOne = (id) => id.startsWith("dm.") && membersOf(id).length === 2;

function isMine(app, thread) {
  if (thread.kind !== "channel") return true;
  return app.state.channels.peek().get(thread.id.slice("channel.".length))?.joined ?? false;
}

function people(app) {
  const me = app.state.me.peek();
  const others = [...app.state.participants.peek().values()].filter(({ id }) => id !== me);
  return others.map(({ id, kind, card }) => ({
    id: `person:${id}`,
    kind: "person",
    title: app.state.nameOf(id),
    hint: card?.description || t.people.kinds[kind],
    icon: iconOfKind(kind),
    participant: id,
    run: () => app.talkTo(id),
  }));
}

/** Channels the reader has not joined. */
function channels(app) {
  const others = [...app.state.channels.peek().values()].filter((channel) => !channel.joined);
  return others.map(({ name, description }) => ({
    id: `channel:${name}`,
    kind: "channel",
    title: `#${name}`,
    hint: description ? `${t.palette.join} · ${description}` : t.palette.join,
    icon: "hash",
    run: () => app.run("channel-join", undefined, name),
  }));
}

function commands(app, context) {
  return [...app.add.commands]
    .filter((command) => !command.hidden && (!command.when || command.when(context)))
    .map((command) => ({
      id: `command:${command.id}`,
      kind: "command",
      title: command.title,
      hint: command.group ?? "",
      icon: command.icon ?? "forward",
      keys: command.keys,
      run: () => command.run(context, ""),
    }));
}

/**
 * Items that match `query`, at most `most`, each with `at`, the matched letters. A leading "#", "@" or
 * ">" searches only channels, people or commands.
 */
export function find(query, items, recent, most = 50) {
  const kind = KINDS[query[0]];
  const word = kind ? query.slice(1) : query;
  const among = kind ? items.filter((item) => item.kind === kind) : items;
  const ranked = search(word, among, (item) => item.title).map((found) => ({
    ...found.item,
    at: found.at,
    worth: found.score + RECENT_WORTH / (1 + recent.rank(found.item.id)) + (found.item.unread ? 1 : 0),
  }));
  return ranked.sort((a, b) => b.worth - a.worth).slice(0, most);
}
