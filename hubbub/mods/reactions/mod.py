"""The mod `reactions`: an emoji under a message, in place of a message.

mods:
  - reactions: {names: [":ship-it:"]}
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal

import regex
from pydantic import Field, JsonValue

from hubbub.errors import OperationError
from hubbub.ids import message_id
from hubbub.mods.api import Mod, ModConfig
from hubbub.mods.fields import BEYOND, number_of
from hubbub.mods.host import Host
from hubbub.mods.operation import Calling, Commit, Statement, bad_request, operation, over_limit
from hubbub.mods.reactions.schemas import (
    ChangeReaction,
    ListReactions,
    MessageReactions,
    Reacted,
    Reaction,
    Reactions,
)
from hubbub.mods.repository import AMONG, KeyedQueues, insert, listed
from hubbub.protocol.messages import Message

__all__ = ["ReactionsConfig", "ReactionsMod"]


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


MOST_CHARACTERS = 24
"""Code points of the longest that is looked at; the recommended ones have up to 10."""

_SHOWN = "\ufe0f"
"""After a character that is text by itself: show it as an emoji."""
_PART = r"(?:[\p{Emoji}--[0-9\#*\p{RI}]](?:\p{Emoji_Modifier}|\uFE0F)?)"
_EMOJI = regex.compile(
    rf"""(?V1x)
      \p{{RI}}{{2}}                                                         # a country's flag
    | [0-9\#*]\uFE0F?\u20E3                                                # a keycap
    | \U0001F3F4[\U000E0030-\U000E0039\U000E0061-\U000E007A]{{1,8}}\U000E007F  # a region's flag
    | {_PART}(?:\u200D{_PART}){{0,3}}
    """
)
_TEXT_BY_ITSELF = regex.compile(
    r"(?V1)[\p{Emoji}--\p{Emoji_Presentation}](?![\uFE0F\p{Emoji_Modifier}])"
)


def one_emoji(text: str) -> str | None:
    """The emoji that the text is, as it is kept; None if it is anything else."""
    if len(text) > MOST_CHARACTERS or _EMOJI.fullmatch(text) is None:
        return None
    return _TEXT_BY_ITSELF.sub(rf"\g<0>{_SHOWN}", text.replace(_SHOWN, ""))


Name = Annotated[str, Field(pattern=r"^:?[a-z0-9+][a-z0-9_+-]{0,31}:?$")]
Change = Literal["add", "remove", "toggle"]


class ReactionsConfig(ModConfig):
    names: tuple[Name, ...] = ()
    """What may stand in place of an emoji, besides all emoji: `:ship-it:`, `lgtm`."""
    max_kinds: Annotated[int, Field(ge=1, le=100)] = 20
    """Different emoji under one message."""
    max_each: Annotated[int, Field(ge=1, le=100)] = 10
    """Different emoji of one participant under one message."""
    who: Annotated[int, Field(ge=0, le=50)] = 10
    """Participants that are named for each emoji; the others are counted."""


class ReactionsMod(Mod):
    """Reactions to messages, with an emoji: they are counted, wake nobody, and are no messages.

    Who may read a message may react to it and see who else has. Each participant has each emoji
    under a message once, however often it is asked for.
    """

    name = "reactions"
    Config = ReactionsConfig
    config: ReactionsConfig
    migrations = "tables"

    def __init__(self, config: ReactionsConfig):
        super().__init__(config)
        self._queues = KeyedQueues()
        """By message: the counts that are told are those that stand."""

    @operation(permission="write", output=Reacted)
    async def add_reaction(self, call: Calling, args: ChangeReaction) -> Commit:
        """React to a message with an emoji, where a message would say no more: it is seen, agreed
        with, or done. It wakes nobody."""
        return await self._change(call, args, "add")

    @operation(permission="write", output=Reacted)
    async def remove_reaction(self, call: Calling, args: ChangeReaction) -> Commit:
        """Take back your reaction to a message."""
        return await self._change(call, args, "remove")

    @operation(permission="write", tool=False, output=Reacted)
    async def toggle_reaction(self, call: Calling, args: ChangeReaction) -> Commit:
        """Add your reaction to a message, or take it back if it is there."""
        return await self._change(call, args, "toggle")

    @operation()
    async def list_reactions(self, call: Calling, args: ListReactions) -> Reactions:
        """List the reactions to some messages, or to those of a thread: which emoji, how many, and
        whose."""
        if (args.thread is None) == (not args.message_ids):
            raise bad_request("name either message_ids or a thread, whose reactions to list")
        if args.thread is None:
            seqs = sorted({number_of(id) for id in args.message_ids})
        else:
            thread = self.host.thread(call, args.thread)
            seqs = await touched(self.host, thread, args.first, args.last or BEYOND)
        me, named = call.participant, self.config.who
        found = await tallies(self.host, seqs[:PAGE], me, named)
        told = [t.to_schema(named) for t in found if self.host.reads(me, t.place.thread)]
        return Reactions(messages=tuple(told), more=len(seqs) > PAGE)

    # Changes ----------------------------------------------------------------------------------

    async def _change(self, call: Calling, args: ChangeReaction, change: Change) -> Commit:
        message, me, given = (
            await self.host.message(call, args.message_id),
            call.participant,
            args.emoji,
        )
        _check_is_there(message, change)
        place = MessagePlace(message.seq, message.thread_id, message.tseq)
        async with self._queues.turn(place.seq) as until:
            found = await tallies(self.host, [place.seq], me, self.config.who)
            tally = found[0] if found else Tally(place)
            emoji = self._known(given)
            there = (emoji or given) in tally.mine
            if there and change != "add":
                emoji = emoji or given  # a name that is known no longer goes all the same
                return until(self._kept(tally.changed(emoji, me, -1), me, emoji, removed=True))
            if there or change == "remove":
                return until(Commit((), self._schema(tally, changed=False)))
            if emoji is None:
                raise self._unknown(given)
            self._check_room(tally, emoji)
            return until(self._kept(tally.changed(emoji, me, 1), me, emoji, removed=False))

    def _kept(self, tally: Tally, me: str, emoji: str, *, removed: bool) -> Commit:
        statement = (removing if removed else adding)(tally.place, emoji, me)
        tell = partial(self._tell, tally, me, emoji, removed)
        return Commit([statement], self._schema(tally, changed=True), applied=tell)

    def _schema(self, tally: Tally, *, changed: bool) -> Reacted:
        told = tally.to_schema(self.config.who)
        return Reacted(**dict(told), changed=changed)

    def _tell(self, tally: Tally, me: str, emoji: str, removed: bool) -> None:
        """Those who read the thread. To each of them another `mine` would be true: `by`, `emoji`
        and the kind say what has changed."""
        told = tally.to_schema(self.config.who)
        data: JsonValue = told.model_dump(mode="json", exclude={"reactions": {"__all__": {"mine"}}})
        assert isinstance(data, dict)
        data |= {"by": me, "emoji": emoji}
        self.host.signal(tally.place.thread, "removed" if removed else "added", data)

    # Rules ------------------------------------------------------------------------------------

    def _known(self, given: str) -> str | None:
        return given if given in self.config.names else one_emoji(given)

    def _unknown(self, given: str) -> OperationError:
        names = self.config.names
        besides = f", or one of: {', '.join(names)}" if names else ""
        return bad_request(f"emoji: {given!r} is no emoji; give one, such as 👍{besides}")

    def _check_room(self, tally: Tally, emoji: str) -> None:
        config, kinds = self.config, [each.emoji for each in tally.counted]
        if len(tally.mine) >= config.max_each:
            why = f"you have reacted to it with {len(tally.mine)} emoji"
        elif emoji not in kinds and len(kinds) >= config.max_kinds:
            why = f"it has {len(kinds)} different emoji; use one of them: {' '.join(kinds)}"
        else:
            return
        raise over_limit(f"the message takes no more reactions: {why}")


def _check_is_there(message: Message, change: Change) -> None:
    """Raises `OperationError` for what is no message of its own, or none any more."""
    if message.amends is not None:
        raise bad_request(f"{message.id} only changes {message.amends.message_id}: react to that")
    if message.amended == "deleted" and change == "add":
        raise bad_request(f"{message.id} was deleted")
