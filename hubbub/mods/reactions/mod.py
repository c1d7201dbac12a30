"""The mod `reactions`: an emoji on a message, instead of a reply.

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
"""Messages per answer."""

_SPARE = 1
"""One participant more is read than is shown, to move up when another one's reaction is removed."""


@dataclass(frozen=True, slots=True)
class MessagePlace:
    """A message and its position."""

    seq: int
    thread: str
    tseq: int


@dataclass(frozen=True, slots=True)
class Tally:
    """All reactions to a message, as one participant sees them."""

    place: MessagePlace
    counted: tuple[Reaction, ...] = ()
    """Each with one participant more than is shown."""

    @property
    def mine(self) -> Collection[str]:
        return [each.emoji for each in self.counted if each.mine]

    def to_schema(self, named: int) -> MessageReactions:
        reactions = (
            each.model_copy(update={"who": each.who[:named], "more": each.count > named})
            for each in self.counted
        )
        return MessageReactions(
            message_id=message_id(self.place.seq),
            thread_id=self.place.thread,
            tseq=self.place.tseq,
            reactions=tuple(reactions),
        )

    def changed(self, emoji: str, me: str, by: Literal[1, -1]) -> Tally:
        """A copy with this reaction, which is new, added, or an existing one removed."""
        by_emoji = {each.emoji: each for each in self.counted}
        old = by_emoji.get(emoji) or _reaction(emoji, 0, (), mine=False)
        who = tuple(name for name in old.who if name != me)
        if by > 0 and old.count == len(who):
            who = (*who, me)
        by_emoji[emoji] = _reaction(emoji, old.count + by, who, mine=by > 0)
        return Tally(self.place, tuple(each for each in by_emoji.values() if each.count))


def _reaction(emoji: str, count: int, who: tuple[str, ...], *, mine: bool) -> Reaction:
    return Reaction(emoji=emoji, count=count, who=who, more=count > len(who), mine=mine)


async def tallies(host: Host, seqs: Sequence[int], me: str, named: int) -> list[Tally]:
    """The reactions to those of these messages that have any, oldest first."""
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
    by_place: dict[MessagePlace, dict[str, Reaction]] = {}
    for seq, thread, tseq, emoji, participant, count, mine in rows:
        counted = by_place.setdefault(MessagePlace(seq, thread, tseq), {})
        before = counted[emoji].who if emoji in counted else ()
        counted[emoji] = _reaction(emoji, count, (*before, participant), mine=bool(mine))
    return [Tally(place, tuple(counted.values())) for place, counted in by_place.items()]


async def reacted_messages(host: Host, thread: str, first: int, last: int) -> list[int]:
    """The seqs of messages of a thread with reactions, oldest first, one more than a page."""
    rows = await host.rows(
        "SELECT DISTINCT tseq, seq FROM reactions_reaction "
        "WHERE thread = ? AND tseq BETWEEN ? AND ? ORDER BY tseq LIMIT ?",
        *(thread, first, last, PAGE + 1),
    )
    return [seq for _, seq in rows]


def insert_reaction(place: MessagePlace, emoji: str, me: str) -> Statement:
    return insert(
        "reactions_reaction",
        seq=place.seq,
        emoji=emoji,
        participant=me,
        thread=place.thread,
        tseq=place.tseq,
    )


def delete_reaction(place: MessagePlace, emoji: str, me: str) -> Statement:
    return Statement(
        "DELETE FROM reactions_reaction WHERE seq = ? AND emoji = ? AND participant = ?",
        (place.seq, emoji, me),
        rows=1,
    )


MOST_CHARACTERS = 24
"""Maximum number of code points of an emoji. The recommended ones have up to 10."""

_AS_EMOJI = "\ufe0f"
"""Variation selector: shows the preceding character as an emoji instead of text."""
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


def normalized_emoji(text: str) -> str | None:
    """The normalized emoji if the text is a single emoji, else None."""
    if len(text) > MOST_CHARACTERS or _EMOJI.fullmatch(text) is None:
        return None
    return _TEXT_BY_ITSELF.sub(rf"\g<0>{_AS_EMOJI}", text.replace(_AS_EMOJI, ""))


Name = Annotated[str, Field(pattern=r"^:?[a-z0-9+][a-z0-9_+-]{0,31}:?$")]
Change = Literal["add", "remove", "toggle"]


class ReactionsConfig(ModConfig):
    names: tuple[Name, ...] = ()
    """Custom names that can be used besides emoji: `:ship-it:`, `lgtm`."""
    max_kinds: Annotated[int, Field(ge=1, le=100)] = 20
    """Maximum number of different emoji on one message."""
    max_each: Annotated[int, Field(ge=1, le=100)] = 10
    """Maximum number of different emoji of one participant on one message."""
    who: Annotated[int, Field(ge=0, le=50)] = 10
    """Maximum number of participants listed per emoji. The rest are only counted."""


class ReactionsMod(Mod):
    """Emoji reactions to messages. They are counted, wake no agent, and are not messages.

    Participants who can read a message can react to it and see all reactions. Each participant has
    each emoji on a message at most once.
    """

    name = "reactions"
    Config = ReactionsConfig
    config: ReactionsConfig
    migrations = "tables"

    def __init__(self, config: ReactionsConfig):
        super().__init__(config)
        self._queues = KeyedQueues()
        """One per message, so that the counts in answers are consistent."""

    @operation(permission="write", output=Reacted)
    async def add_reaction(self, call: Calling, args: ChangeReaction) -> Commit:
        """React to a message with an emoji when a reply would add nothing more than that it was
        seen, agreed with or done. It wakes no agent."""
        return await self._change(call, args, "add")

    @operation(permission="write", output=Reacted)
    async def remove_reaction(self, call: Calling, args: ChangeReaction) -> Commit:
        """Remove your reaction from a message."""
        return await self._change(call, args, "remove")

    @operation(permission="write", tool=False, output=Reacted)
    async def toggle_reaction(self, call: Calling, args: ChangeReaction) -> Commit:
        """Add your reaction to a message, or remove it if it exists."""
        return await self._change(call, args, "toggle")

    @operation()
    async def list_reactions(self, call: Calling, args: ListReactions) -> Reactions:
        """List the reactions to messages, or to all messages of a thread: each emoji with its count
        and participants."""
        if (args.thread is None) == (not args.message_ids):
            raise bad_request("give either message_ids or thread")
        if args.thread is None:
            seqs = sorted({number_of(id) for id in args.message_ids})
        else:
            thread = self.host.thread(call, args.thread)
            seqs = await reacted_messages(self.host, thread, args.first, args.last or BEYOND)
        me, named = call.participant, self.config.who
        page = await tallies(self.host, seqs[:PAGE], me, named)
        visible = [t.to_schema(named) for t in page if self.host.reads(me, t.place.thread)]
        return Reactions(messages=tuple(visible), more=len(seqs) > PAGE)

    # Changes ----------------------------------------------------------------------------------

    async def _change(self, call: Calling, args: ChangeReaction, change: Change) -> Commit:
        message, me, given = (
            await self.host.message(call, args.message_id),
            call.participant,
            args.emoji,
        )
        _check_can_react(message, change)
        place = MessagePlace(message.seq, message.thread_id, message.tseq)
        async with self._queues.turn(place.seq) as until:
            changed = await tallies(self.host, [place.seq], me, self.config.who)
            tally = changed[0] if changed else Tally(place)
            emoji = self._accepted(given)
            exists = (emoji or given) in tally.mine
            if exists and change != "add":
                emoji = emoji or given  # a name that is no longer configured can still be removed
                return until(self._commit(tally.changed(emoji, me, -1), me, emoji, removed=True))
            if exists or change == "remove":
                return until(Commit((), self._schema(tally, changed=False)))
            if emoji is None:
                raise self._unknown_emoji(given)
            self._check_room(tally, emoji)
            return until(self._commit(tally.changed(emoji, me, 1), me, emoji, removed=False))

    def _commit(self, tally: Tally, me: str, emoji: str, *, removed: bool) -> Commit:
        statement = (delete_reaction if removed else insert_reaction)(tally.place, emoji, me)
        signal = partial(self._signal, tally, me, emoji, removed)
        return Commit([statement], self._schema(tally, changed=True), applied=signal)

    def _schema(self, tally: Tally, *, changed: bool) -> Reacted:
        reactions = tally.to_schema(self.config.who)
        return Reacted(**dict(reactions), changed=changed)

    def _signal(self, tally: Tally, me: str, emoji: str, removed: bool) -> None:
        """Signal the change to the readers of the thread. `mine` differs between them, so it is
        left out; `by`, `emoji` and the kind describe the change."""
        schema = tally.to_schema(self.config.who)
        excluded = {"reactions": {"__all__": {"mine"}}}
        data: JsonValue = schema.model_dump(mode="json", exclude=excluded)
        assert isinstance(data, dict)
        data |= {"by": me, "emoji": emoji}
        self.host.signal(tally.place.thread, "removed" if removed else "added", data)

    # Rules ------------------------------------------------------------------------------------

    def _accepted(self, given: str) -> str | None:
        return given if given in self.config.names else normalized_emoji(given)

    def _unknown_emoji(self, given: str) -> OperationError:
        names = self.config.names
        custom = f", or one of: {', '.join(names)}" if names else ""
        return bad_request(f"emoji: {given!r} is not an emoji; give one, such as 👍{custom}")

    def _check_room(self, tally: Tally, emoji: str) -> None:
        config, kinds = self.config, [each.emoji for each in tally.counted]
        if len(tally.mine) >= config.max_each:
            why = f"you have already used {len(tally.mine)} emoji on it"
        elif emoji not in kinds and len(kinds) >= config.max_kinds:
            why = f"it has {len(kinds)} different emoji; use one of them: {' '.join(kinds)}"
        else:
            return
        raise over_limit(f"the message cannot have more reactions: {why}")


def _check_can_react(message: Message, change: Change) -> None:
    """Raises `OperationError` for a message that amends another or was deleted."""
    if message.amends is not None:
        of = message.amends.message_id
        raise bad_request(f"{message.id} is an edit of {of}; react to {of} instead")
    if message.amended == "deleted" and change == "add":
        raise bad_request(f"{message.id} was deleted")
