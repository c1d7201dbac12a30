// The order in which participants are listed. Pure.

const KINDS = ["agent", "human", "service"];

/** Everybody but `me`: agents first, then people, then services; those who are here first. */
export function peopleOf(participants, me) {
  return [...participants].filter(({ id }) => id !== me).sort(
    (a, b) =>
      KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind) ||
      Number(b.present) - Number(a.present) ||
      (a.id < b.id ? -1 : 1),
  );
}

/** Of those in that order: who is listed, and people who are away, whom one must ask for. */
export function parted(people) {
  const isAway = ({ kind, present }) => kind !== "agent" && !present;
  return { listed: people.filter((each) => !isAway(each)), away: people.filter(isAway) };
}
