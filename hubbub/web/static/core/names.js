// Names of participants: the name on the card if there is one, with the id beside it. Ids are
// authenticated; names are only claimed.
import { visible } from "./markdown.js";

const LONGEST = 64;
const ID = /^[A-Za-z0-9_-]{1,64}$/;

/** Map of id to name, for participants with one. A name that is not unique, or equals an id, includes the id. */
export function called(participants) {
  const all = [...participants];
  const named = all.map(({ id, card }) => [id, String(card?.name ?? "").trim().slice(0, LONGEST)]).filter(([, name]) => name);
  const times = new Map();
  const count = (name) => times.set(plain(name), (times.get(plain(name)) ?? 0) + 1);
  all.forEach(({ id }) => count(id));
  named.forEach(([id, name]) => plain(name) !== plain(id) && count(name));
  return new Map(named.map(([id, name]) => [id, times.get(plain(name)) > 1 ? `${visible(name)} (${id})` : visible(name)]));
}

/** Without differences that are hard to see: case, accents, spaces and punctuation. */
const plain = (name) => name.normalize("NFKD").replace(/[^\p{L}\p{N}]/gu, "").toLowerCase();

/** A stable id for a person who joins under a name: the name itself if it is a valid id. */
export function idFor(name) {
  const trimmed = name.trim();
  if (ID.test(trimmed)) return trimmed;
  const letters = trimmed.normalize("NFKD").replace(/\p{M}/gu, "").replace(/ß/g, "ss").toLowerCase();
  const id = letters.replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, LONGEST);
  return id || (trimmed && `person-${hashOf(trimmed).toString(36)}`);
}

/** A 32-bit hash. */
export function hashOf(text) {
  let hash = 0x811c9dc5;
  for (const char of text) hash = Math.imul(hash ^ char.codePointAt(0), 0x01000193) >>> 0;
  return Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d) >>> 0;
}
