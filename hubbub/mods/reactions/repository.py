"""What stands under messages: read from the mod's table, and changed by one reaction."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from hubbub.ids import message_id
from hubbub.mods.host import Host
from hubbub.mods.reactions.schemas import MessageReactions, Reaction
from hubbub.mods.repository import AMONG, insert, listed
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
class Tally:
    """All that stands under a message, as one participant sees it."""

    place: MessagePlace
    counted: tuple[Reaction, ...] = ()
    """Each with one participant more than is told."""

    @property
    def mine(self) -> Collection[str]:
        return [each.emoji for each in self.counted if each.mine]

    def to_schema(self, named: int) -> MessageReactions:
        told = (
            each.model_copy(update={"who": each.who[:named], "more": each.count > named})
            for each in self.counted
        )
        return MessageReactions(
            message_id=message_id(self.place.seq),
            thread_id=self.place.thread,
            tseq=self.place.tseq,
            reactions=tuple(told),
        )

    def changed(self, emoji: str, me: str, by: Literal[1, -1]) -> Tally:
        """The same with a reaction more, which is not there yet, or without one that is."""
        found = {each.emoji: each for each in self.counted}
        old = found.get(emoji) or _reaction(emoji, 0, (), mine=False)
        who = tuple(name for name in old.who if name != me)
        if by > 0 and old.count == len(who):
            who = (*who, me)
        found[emoji] = _reaction(emoji, old.count + by, who, mine=by > 0)
        return Tally(self.place, tuple(each for each in found.values() if each.count))


def _reaction(emoji: str, count: int, who: tuple[str, ...], *, mine: bool) -> Reaction:
    return Reaction(emoji=emoji, count=count, who=who, more=count > len(who), mine=mine)


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
    found: dict[MessagePlace, dict[str, Reaction]] = {}
    for seq, thread, tseq, emoji, participant, count, mine in rows:
        counted = found.setdefault(MessagePlace(seq, thread, tseq), {})
        before = counted[emoji].who if emoji in counted else ()
        counted[emoji] = _reaction(emoji, count, (*before, participant), mine=bool(mine))
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
    return insert(
        "reactions_reaction",
        seq=place.seq,
        emoji=emoji,
        participant=me,
        thread=place.thread,
        tseq=place.tseq,
    )


def removing(place: MessagePlace, emoji: str, me: str) -> Statement:
    return Statement(
        "DELETE FROM reactions_reaction WHERE seq = ? AND emoji = ? AND participant = ?",
        (place.seq, emoji, me),
        rows=1,
    )
