"""What stands under messages: read from the mod's table, and changed by one reaction."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from hubbub.ids import message_id
from hubbub.mods.host import Host
from hubbub.mods.reactions.schemas import MessageReactions, Reaction
from hubbub.mods.repository import AMONG, listed
from hubbub.mods.rows import Statement

__all__ = ["PAGE", "MessagePlace", "Tally", "adding", "removing", "tallies", "touched"]

PAGE = 100
"""Messages that one answer tells of."""

_SPARE = 1
"""One participant more is read than is told: who moves up when another one's reaction goes."""


@dataclass(frozen=True, slots=True)
class MessagePlace:
    """A message."""

    seq: int
    thread: str
    tseq: int


@dataclass(frozen=True, slots=True)
class Counted:
    """One emoji under a message."""

    emoji: str
    count: int
    who: tuple[str, ...]
    """The first of them, and one more than is told."""
    mine: bool

    def to_schema(self, named: int) -> Reaction:
        who = self.who[:named]
        return Reaction(
            emoji=self.emoji,
            count=self.count,
            who=who,
            more=self.count > len(who),
            mine=self.mine,
        )


@dataclass(frozen=True, slots=True)
class Tally:
    """All that stands under a message, as one participant sees it."""

    place: MessagePlace
    counted: tuple[Counted, ...] = ()

    @property
    def mine(self) -> Collection[str]:
        return [each.emoji for each in self.counted if each.mine]

    def to_schema(self, named: int) -> MessageReactions:
        return MessageReactions(
            message_id=message_id(self.place.seq),
            thread_id=self.place.thread,
            tseq=self.place.tseq,
            reactions=tuple(each.to_schema(named) for each in self.counted),
        )

    def with_mine(self, emoji: str, me: str) -> Tally:
        """The same with a reaction more, which is not there yet."""
        old = next((c for c in self.counted if c.emoji == emoji), None)
        if old is None:
            new = Counted(emoji, 1, (me,), mine=True)
            return replace(self, counted=(*self.counted, new))
        who = old.who if old.count > len(old.who) else (*old.who, me)
        return self._with(old, Counted(emoji, old.count + 1, who, mine=True))

    def without_mine(self, emoji: str, me: str) -> Tally:
        """The same without a reaction that is there."""
        old = next(c for c in self.counted if c.emoji == emoji)
        who = tuple(name for name in old.who if name != me)
        return self._with(old, Counted(emoji, old.count - 1, who, mine=False))

    def _with(self, old: Counted, new: Counted) -> Tally:
        counted = tuple(new if each is old else each for each in self.counted)
        return replace(self, counted=tuple(each for each in counted if each.count))


async def tallies(host: Host, seqs: Sequence[int], me: str, named: int) -> list[Tally]:
    """What stands under these messages, as far as there is anything, oldest first."""
    rows = await host.rows(
        f"""
        WITH reactions_ranked AS (
            SELECT seq, thread, tseq, emoji, participant, n,
                row_number() OVER (PARTITION BY seq, emoji ORDER BY n) AS rank,
                count(*) OVER (PARTITION BY seq, emoji) AS count,
                max(participant = ?) OVER (PARTITION BY seq, emoji) AS mine,
                min(n) OVER (PARTITION BY seq, emoji) AS since
            FROM reactions_reaction WHERE seq {AMONG}
        )
        SELECT seq, thread, tseq, emoji, participant, count, mine FROM reactions_ranked
        WHERE rank <= ? ORDER BY seq, since, n
        """,
        me,
        listed(seqs),
        named + _SPARE,
    )
    found: dict[MessagePlace, dict[str, Counted]] = {}
    for seq, thread, tseq, emoji, participant, count, mine in rows:
        counted = found.setdefault(MessagePlace(seq, thread, tseq), {})
        before = counted[emoji].who if emoji in counted else ()
        counted[emoji] = Counted(emoji, count, (*before, participant), bool(mine))
    return [Tally(place, tuple(counted.values())) for place, counted in found.items()]


async def touched(host: Host, thread: str, first: int, last: int) -> list[int]:
    """Messages of a thread with reactions, oldest first; one more than a page has."""
    rows = await host.rows(
        "SELECT DISTINCT tseq, seq FROM reactions_reaction "
        "WHERE thread = ? AND tseq BETWEEN ? AND ? ORDER BY tseq LIMIT ?",
        *(thread, first, last, PAGE + 1),
    )
    return [seq for _, seq in rows]


def adding(place: MessagePlace, emoji: str, me: str) -> Statement:
    return Statement(
        "INSERT INTO reactions_reaction (seq, emoji, participant, thread, tseq) "
        "VALUES (?, ?, ?, ?, ?)",
        (place.seq, emoji, me, place.thread, place.tseq),
        rows=1,
    )


def removing(place: MessagePlace, emoji: str, me: str) -> Statement:
    return Statement(
        "DELETE FROM reactions_reaction WHERE seq = ? AND emoji = ? AND participant = ?",
        (place.seq, emoji, me),
        rows=1,
    )
