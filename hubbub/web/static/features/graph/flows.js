// Derives the picture's edges from messages: who recently wrote to whom, and how much.
import { channelThread, membersOf, rootOf } from "../../core/ids.js";

export const LATELY_MS = 10 * 60_000;
const EVERYONE = "broadcast";
const MOST_MEMBERS = 30;

/** The node key of a room: a channel, a mod's thread, or the broadcast thread. Participants use their id. */
export const roomKey = (thread) => `~${rootOf(thread)}`;

/**
 * The edges of a message, from its sender: [from, to] keys. In a room it goes to the room, and from
 * there to the participants it mentions.
 */
export function pathsOf(message) {
  const { sender_id, thread_id, type, mentions = [] } = message;
  if (type === "direct") {
    return membersOf(thread_id).filter((id) => id !== sender_id).map((id) => [sender_id, id]);
  }
  const room = roomKey(thread_id);
  const named = mentions.filter((id) => id !== sender_id);
  return [[sender_id, room], ...named.map((id) => [room, id])];
}

/**
 * Edges of the messages of the last ten minutes, undirected.
 * @param {{message, at}[]} flow  `at`: when, in ms.
 * @returns {{key, ends: [string, string], weight, last}[]}  `weight` above 0 to 1 and more: messages,
 *   older ones weigh less; `last`: the time of the last one.
 */
export function edgesOf(flow, now) {
  const edges = new Map();
  for (const { message, at } of flow) {
    const age = now - at;
    if (age > LATELY_MS) continue;
    for (const path of pathsOf(message)) {
      const ends = [...path].sort();
      const key = ends.join(" ");
      const edge = edges.get(key) ?? { key, ends, weight: 0, last: 0 };
      edge.weight += 1 - age / LATELY_MS;
      edge.last = Math.max(edge.last, at);
      edges.set(key, edge);
    }
  }
  return [...edges.values()].filter(({ weight }) => weight > 0);
}

/**
 * The faint edges between channels and their members. Large channels are left out for clarity.
 * @returns {{key: string, ends: string[]}[]}
 */
export function membershipsOf(channels) {
  const found = [];
  for (const { name, members } of channels) {
    if (members.length > MOST_MEMBERS) continue;
    const room = roomKey(channelThread(name));
    for (const id of members) found.push({ key: `${id} ${room}`, ends: [id, room] });
  }
  return found;
}

/** The nodes of the edges, in order. */
export function keysOf(edges) {
  return [...new Set(edges.flatMap(({ ends }) => ends))].sort();
}

/**
 * Nodes: all participants, all channels, and the others among `keys`.
 * @returns {{key, kind: "agent" | "human" | "service" | "room", name, thread}[]}  By key.
 */
export function nodesOf(participants, channels, keys) {
  const nodes = new Map();
  for (const { id, kind } of participants) nodes.set(id, { key: id, kind, name: id, thread: null });
  const addRoom = (thread, name) => {
    const key = roomKey(thread);
    if (!nodes.has(key)) nodes.set(key, { key, kind: "room", name, thread });
  };
  for (const { name } of channels) addRoom(channelThread(name), `#${name}`);
  for (const key of keys) {
    if (nodes.has(key)) continue;
    if (!key.startsWith("~")) nodes.set(key, { key, kind: "service", name: key, thread: null });
    else addRoom(key.slice(1), key === `~${EVERYONE}` ? EVERYONE : key.slice(key.indexOf(".") + 1));
  }
  return [...nodes.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
}
