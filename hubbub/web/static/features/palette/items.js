// The palette's items and their order. Pure, except for what an item runs.
import { membersOf, rootOf } from "../../core/ids.js";
import { search } from "../../core/fuzzy.js";
import { visible } from "../../core/markdown.js";
import { firstWords } from "../../core/messages.js";
import { iconOfKind, iconOfThread } from "../../parts/icon.js";
import { t } from "../../texts.js";

const KINDS = { "#": "channel", "@": "person", ">": "command" };
const RECENT_WORTH = 5; // bonus of the latest choice

const REPLIES = 30; // the latest reply threads

/** All items: {id, kind, title, hint, icon, keys?, unread?, participant?, run}. */
export function itemsOf(app, context, replied) {
  return [...threads(app), ...people(app), ...channels(app), ...commands(app, context), ...replies(app, replied)];
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

const repliesOf = (app) =>
  app.state.byActivity.peek().filter((thread) => thread.parent !== null && isMine(app, thread)).slice(0, REPLIES);

/** The messages that reply threads are titled by: Map of thread to message. */
export async function repliedMessages(app) {
  const untitled = repliesOf(app).filter(({ id }) => !titleOf(app, id));
  const found = await Promise.allSettled(untitled.map(({ repliesTo }) => app.message(`m${repliesTo}`)));
  return new Map(untitled.map(({ id }, at) => [id, found[at].value]).filter(([, message]) => message));
}

const titleOf = (app, id) => app.state.labels.peek().get(id)?.title;

function replies(app, replied) {
  return repliesOf(app).map(({ id, repliesTo, unread }) => {
    const [named, message] = [titleOf(app, id), replied.get(id)];
    const words = message ? firstWords(app.state.current(message), 60) : `m${repliesTo}`;
    return {
      id: `thread:${id}`,
      kind: "thread",
      title: named ? visible(named) : t.sidebar.repliesTo(words),
      hint: app.state.titleOf(id),
      icon: "replies",
      unread: unread.peek(),
      run: () => app.show(id),
    };
  });
}

const isWithOne = (id) => id.startsWith("dm.") && membersOf(id).length === 2;

function isMine(app, thread) {
  if (thread.kind !== "channel") return true;
  return app.state.channels.peek().get(rootOf(thread.id).slice("channel.".length))?.joined ?? false;
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
