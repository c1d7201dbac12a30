// The order of participants in lists. Pure.

const KINDS = ["agent", "human", "service"];

/** Everyone but `me`: agents first, then people, then services; present ones before absent ones. */
export function peopleOf(participants, me) {
  return [...participants].filter(({ id }) => id !== me).sort(
    (a, b) =>
      KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind) ||
      Number(b.present) - Number(a.present) ||
      (a.id < b.id ? -1 : 1),
  );
}

/** In that order: those to list, and absent people, who are shown on request. */
export function parted(people) {
  const isAway = ({ kind, present }) => kind !== "agent" && !present;
  return { listed: people.filter((each) => !isAway(each)), away: people.filter(isAway) };
}
