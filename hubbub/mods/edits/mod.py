"""The mod `edits`: authors change and delete what they have said.

mods:
  - edits: {within: 1h}
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate, takewhile
from typing import Annotated

from pydantic import Field, JsonValue

from hubbub.config.units import Span
from hubbub.ids import parse_message_id
from hubbub.mods.api import Mod, ModConfig
from hubbub.mods.edits.schemas import (
    DeleteMessage,
    EditMessage,
    MessageHistory,
    MessageVersion,
    MessageVersions,
)
from hubbub.mods.fields import BEYOND
from hubbub.mods.operation import (
    Calling,
    Statement,
    bad_request,
    forbidden,
    not_found,
    operation,
    over_limit,
)
from hubbub.mods.repository import AMONG, Repository, listed
from hubbub.protocol.messages import Amendment, Draft, Message, amended
from hubbub.protocol.operations import SendResult

__all__ = ["EditsConfig", "EditsMod", "added"]

_NEWEST = f"""SELECT message, body, outside, max(seq) FROM edits_amendment
WHERE message {AMONG} GROUP BY message"""
# What was deleted stays so; and once content from outside was in a message, it is marked for good.
_ADD = """INSERT INTO edits_amendment
SELECT ?1, ?2, ?3, ?4 OR EXISTS (
    SELECT 1 FROM edits_amendment WHERE message = ?1 AND outside
), ?5 WHERE NOT EXISTS (
    SELECT 1 FROM edits_amendment WHERE message = ?1 AND kind = 'deleted'
)"""


def added(message: Message, amends: Amendment) -> Statement:
    """What is written with an edit or a deletion."""
    seq = parse_message_id(amends.message_id)
    body = message.model_dump_json(exclude_none=True)
    return Statement(_ADD, (seq, message.seq, amends.kind, message.outside, body))


class AmendmentRepository(Repository):
    async def empty(self) -> bool:
        """Whether nothing was ever edited."""
        return not await self._host.rows("SELECT 1 FROM edits_amendment LIMIT 1")

    async def newest(self, messages: Collection[int]) -> Mapping[int, Message]:
        """By message (seq): the last edit of it, or its deletion."""
        found: dict[int, Message] = {}
        for message, body, outside, _ in await self._host.rows(_NEWEST, listed(messages)):
            last = Message.model_validate_json(body)
            found[message] = last.model_copy(update={"outside": bool(outside)})
        return found

    async def count(self, message: int) -> int:
        """How often a message was edited."""
        sql = "SELECT count(*) FROM edits_amendment WHERE message = ?"
        return int(await self.value(sql, message))

    async def of(self, message: int, before: int, limit: int) -> Sequence[Message]:
        """The last `limit` edits of a message before this position (seq), oldest first."""
        sql = (
            "SELECT body FROM edits_amendment WHERE message = ? AND seq < ? "
            "ORDER BY seq DESC LIMIT ?"
        )
        return (await self.all(Message.model_validate_json, sql, message, before, limit))[::-1]


ROOM = 256 * 1024
"""Bytes that the versions of a message may take of an answer, about."""


class EditsConfig(ModConfig):
    within: Span | None = None
    """How long after it was sent a message may be edited, and deleted by its author; left out: for
    ever."""
    agents: bool = True
    """Whether agents and services may edit and delete what they have said."""
    most: Annotated[int, Field(ge=1, le=10_000)] = 100
    """How often one message may be edited."""


class EditsMod(Mod):
    """Messages that their authors edit and delete, with the history of each.

    The log stays as it is: an edit is a message that amends another, and reaches whom that one has
    reached. Whoever reads messages is shown the latest.
    """

    name = "edits"
    Config = EditsConfig
    config: EditsConfig
    migrations = "tables"

    def __init__(self, config: EditsConfig):
        super().__init__(config)
        self._store: AmendmentRepository
        self._any = False
        """Whether a message was ever edited."""

    async def start(self) -> None:
        self._store = AmendmentRepository(self.host)
        self._any = not await self._store.empty()

    # What is shown ----------------------------------------------------------------------------

    def watches(self, draft: Draft) -> bool:
        return draft.amends is not None

    def on_stored(self, message: Message) -> Sequence[Statement]:
        assert message.amends is not None, "no other is watched"
        self._any = True
        return [added(message, message.amends)]

    async def shown(self, messages: Sequence[Message]) -> Sequence[Message]:
        if not self._any:
            return messages
        newest = await self._store.newest([_subject(message) for message in messages])
        return [_as_now(message, newest.get(_subject(message))) for message in messages]

    # Operations -------------------------------------------------------------------------------

    @operation(permission="write", output=SendResult)
    async def edit_message(self, call: Calling, args: EditMessage) -> Draft:
        """Edit one of your messages. Those who have read it are shown the new text;
        nobody is woken by it, so send a new message for what somebody shall act on."""
        content, text = _content_of(args)
        message = await self._mine(call, args.message_id, "edit")
        if (message.content, message.text_representation) == (content, text):
            raise bad_request(f"{message.id} says just that already")
        if await self._store.count(message.seq) >= self.config.most:
            raise over_limit(f"{message.id} was edited {self.config.most} times; send a new one")
        return self.host.amend(
            call,
            message,
            "edited",
            content,
            text=text,
            cause=args.cause,
            outside=args.outside,
        )

    @operation(permission="write", output=SendResult)
    async def delete_message(self, call: Calling, args: DeleteMessage) -> Draft:
        """Delete one of your messages: it is no longer shown to anybody. Nobody is woken by
        it."""
        message = await self._mine(call, args.message_id, "delete")
        return self.host.amend(call, message, "deleted", cause=args.cause)

    @operation()
    async def message_history(self, call: Calling, args: MessageHistory) -> MessageVersions:
        """Read the versions of a message, oldest first. Of a deleted
        message only its author and owners of the network read them."""
        message = await self.host.message(call, args.message_id, look=True)
        _check_is_said(message)
        hidden = message.amended == "deleted" and not _is_author(call, message)
        if hidden and not call.owner:
            raise forbidden(
                f"{message.id} was deleted: only its author and owners read what it said"
            )
        before = args.before or BEYOND
        known = await self._store.of(message.seq, before, args.limit + 1)
        if len(known) <= args.limit and message.seq < before:
            known = [*await self.host.log(message.seq - 1, 1), *known]
        page = _fitting(known[-args.limit :])
        return MessageVersions(
            message_id=message.id,
            versions=tuple(map(_version, page)),
            more=len(known) > len(page),
        )

    # Who may ----------------------------------------------------------------------------------

    async def _mine(self, call: Calling, id: str, verb: str) -> Message:
        """The message as it is shown, if the caller may do that to it. Raises `OperationError`."""
        message = await self.host.message(call, id, look=True)
        _check_is_said(message)
        author = _is_author(call, message)
        owner = verb == "delete" and call.owner
        if (not author or message.imported) and not owner:
            raise forbidden(f"{id} was sent by {message.sender_id}: you may not {verb} it")
        if message.amended == "deleted":
            raise not_found(f"{id} was deleted")
        if message.request is not None:
            raise forbidden(
                f"{id} belongs to a request, of which it stays the record; you may not {verb} it"
            )
        if not owner:
            self._check_author(call, message, verb)
        return message

    def _check_author(self, call: Calling, message: Message, verb: str) -> None:
        """Raises `OperationError` for what the settings keep an author from."""
        if call.kind != "human" and not self.config.agents:
            raise forbidden(f"only people {verb} messages in this network")
        within = self.config.within
        if within is not None and self.host.now() > message.sent_at.timestamp() + within:
            raise forbidden(
                f"{message.id}: you may {verb} a message for {within:g} s after you have sent it"
            )


def _content_of(args: EditMessage) -> tuple[JsonValue, str | None]:
    """The new content, and how it reads. Raises `OperationError`."""
    if (args.text is None) == (args.content is None):
        raise bad_request("text: say text, or else content")
    if args.text is None:
        return args.content, args.text_representation
    if args.text_representation is not None:
        raise bad_request("text_representation: only with content")
    return args.text, None


def _is_author(call: Calling, message: Message) -> bool:
    return call.participant in (message.sender_id, message.spoken_by)


def _check_is_said(message: Message) -> None:
    """Raises `OperationError` for an edit itself."""
    if message.amends is not None:
        of = message.amends.message_id
        raise bad_request(f"{message.id} only changes {of}: name {of} itself")


def _subject(message: Message) -> int:
    """The message (seq) whose latest edit says how this one is shown."""
    if message.amends is None:
        return message.seq
    return parse_message_id(message.amends.message_id) or message.seq


def _as_now(message: Message, newest: Message | None) -> Message:
    if newest is None or newest.amends is None:
        return message
    if message.amends is None:
        return amended(message, [newest])
    if newest.amends.kind == "deleted" and message.amends.kind == "edited":
        return amended(message, [newest])  # an earlier version: what it said is gone, too
    return message


def _fitting(messages: Sequence[Message]) -> Sequence[Message]:
    """As many of the last ones as one answer has room for; one at least."""
    sizes = (len(message.model_dump_json()) for message in reversed(messages))
    fitting = sum(1 for _ in takewhile(lambda size: size <= ROOM, accumulate(sizes)))
    return messages[-max(1, fitting) :]


def _version(message: Message) -> MessageVersion:
    return MessageVersion(
        seq=message.seq,
        kind=message.amends.kind if message.amends is not None else "sent",
        by=message.sender_id,
        spoken_by=message.spoken_by,
        at=message.sent_at,
        content=message.content,
        text_representation=message.text_representation,
    )
