"""The mod `reactions`: an emoji under a message, in place of a message.

mods:
  - reactions: {names: [":ship-it:"]}
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

import regex
from pydantic import Field, JsonValue

from hubbub.errors import OperationError
from hubbub.mods.api import Mod, ModConfig
from hubbub.mods.fields import BEYOND, number_of
from hubbub.mods.operation import Calling, Commit, operation
from hubbub.mods.queues import KeyedQueues
from hubbub.mods.reactions.repository import (
    PAGE,
    MessagePlace,
    Tally,
    adding,
    removing,
    tallies,
    touched,
)
from hubbub.mods.reactions.schemas import (
    ChangeReaction,
    ListReactions,
    Reacted,
    Reactions,
)
from hubbub.mods.refusals import bad_request, over_limit
from hubbub.protocol.messages import Message

__all__ = ["ReactionsConfig", "ReactionsMod"]

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
