"""The mod `edits`: authors edit and delete their messages.

mods:
  - edits: {within: 1h}
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
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
from hubbub.protocol.messages import Amendment, Draft, Message, amended, last_within
from hubbub.protocol.operations import SendResult

__all__ = ["EditsConfig", "EditsMod", "insert_amendment"]

_NEWEST = f"""SELECT message, body, untrusted, max(seq) FROM edits_amendment
WHERE message {AMONG} GROUP BY message"""
# A deletion is final, and a message that ever had content from outside stays marked.
_ADD = """INSERT INTO edits_amendment
SELECT ?1, ?2, ?3, ?4 OR EXISTS (
    SELECT 1 FROM edits_amendment WHERE message = ?1 AND untrusted
), ?5 WHERE NOT EXISTS (
    SELECT 1 FROM edits_amendment WHERE message = ?1 AND kind = 'deleted'
)"""


def insert_amendment(message: Message, amends: Amendment) -> Statement:
    """The row for an edit or a deletion."""
    seq = parse_message_id(amends.message_id)
    body = message.model_dump_json(exclude_none=True)
    return Statement(_ADD, (seq, message.seq, amends.kind, message.untrusted, body))


class AmendmentRepository(Repository):
    async def is_empty(self) -> bool:
        """Whether no message was ever edited."""
        return not await self._host.rows("SELECT 1 FROM edits_amendment LIMIT 1")

    async def newest(self, messages: Collection[int]) -> Mapping[int, Message]:
        """The last edit or the deletion of each message, by its seq."""
        newest: dict[int, Message] = {}
        for message, body, untrusted, _ in await self._host.rows(_NEWEST, listed(messages)):
            last = Message.model_validate_json(body)
            newest[message] = last.model_copy(update={"untrusted": bool(untrusted)})
        return newest

    async def count(self, message: int) -> int:
        """The number of edits of a message."""
        sql = "SELECT count(*) FROM edits_amendment WHERE message = ?"
        return int(await self.value(sql, message))

    async def edits_of(self, message: int, before: int, limit: int) -> Sequence[Message]:
        """The last `limit` edits of a message before this position (seq), oldest first."""
        sql = (
            "SELECT body FROM edits_amendment WHERE message = ? AND seq < ? "
            "ORDER BY seq DESC LIMIT ?"
        )
        return (await self.all(Message.model_validate_json, sql, message, before, limit))[::-1]


MAX_BYTES = 256 * 1024
"""Approximate limit on the size of the versions in one answer."""


class EditsConfig(ModConfig):
    within: Span | None = None
    """How long after sending its author can edit or delete a message. Default: without limit."""
    agents: bool = True
    """Whether agents and services can edit and delete their messages."""
    most: Annotated[int, Field(ge=1, le=10_000)] = 100
    """Maximum number of edits per message."""


class EditsMod(Mod):
    """Editing and deleting of messages by their authors, with a history of each message.

    The log does not change: an edit is a message that amends another and reaches the same
    recipients. Readers see the latest version.
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
        self._any = not await self._store.is_empty()

    # Hooks ------------------------------------------------------------------------------------

    def watches(self, draft: Draft) -> bool:
        return draft.amends is not None

    def on_stored(self, message: Message) -> Sequence[Statement]:
        assert message.amends is not None, "`watches` accepts no other"
        self._any = True
        return [insert_amendment(message, message.amends)]

    async def shown(self, messages: Sequence[Message]) -> Sequence[Message]:
        if not self._any:
            return messages
        newest = await self._store.newest([_subject(message) for message in messages])
        return [_latest_version(message, newest.get(_subject(message))) for message in messages]

    # Operations -------------------------------------------------------------------------------

    @operation(permission="write", output=SendResult)
    async def edit_message(self, call: Calling, args: EditMessage) -> Draft:
        """Edit one of your messages. Its readers see the new text. An edit wakes no agent: if
        someone needs to act on it, send a new message."""
        content, text = _content_of(args)
        message = await self._amendable(call, args.message_id, "edit")
        if (message.content, message.text_representation) == (content, text):
            raise bad_request(f"{message.id} already has this text")
        if await self._store.count(message.seq) >= self.config.most:
            raise over_limit(
                f"{message.id} was edited {self.config.most} times, the limit; send a new message"
            )
        return self.host.amend(
            call,
            message,
            "edited",
            content,
            text=text,
            cause=args.cause,
            untrusted=args.untrusted,
        )

    @operation(permission="write", output=SendResult)
    async def delete_message(self, call: Calling, args: DeleteMessage) -> Draft:
        """Delete one of your messages. It is no longer shown to anyone. This wakes no agent."""
        message = await self._amendable(call, args.message_id, "delete")
        return self.host.amend(call, message, "deleted", cause=args.cause)

    @operation()
    async def message_history(self, call: Calling, args: MessageHistory) -> MessageVersions:
        """Read the versions of a message, oldest first. The versions of a deleted message are
        visible only to its author and owners of the network."""
        message = await self.host.message(call, args.message_id, look=True)
        _check_original(message)
        hidden = message.amended == "deleted" and not _is_author(call, message)
        if hidden and not call.owner:
            raise forbidden(
                f"{message.id} was deleted; only its author and owners can read its versions"
            )
        before = args.before or BEYOND
        versions = await self._store.edits_of(message.seq, before, args.limit + 1)
        if len(versions) <= args.limit and message.seq < before:
            versions = [*await self.host.log(message.seq - 1, 1), *versions]
        page = last_within(versions[-args.limit :], MAX_BYTES)
        return MessageVersions(
            message_id=message.id,
            versions=tuple(map(_version, page)),
            more=len(versions) > len(page),
        )

    # Permissions ------------------------------------------------------------------------------

    async def _amendable(self, call: Calling, id: str, verb: str) -> Message:
        """The message as shown, if the caller can amend it. Raises `OperationError`."""
        message = await self.host.message(call, id, look=True)
        _check_original(message)
        author = _is_author(call, message)
        owner = verb == "delete" and call.owner
        if (not author or message.imported) and not owner:
            raise forbidden(f"{id} was sent by {message.author}; you cannot {verb} it")
        if message.amended == "deleted":
            raise not_found(f"{id} was deleted")
        if message.request is not None:
            raise forbidden(
                f"{id} belongs to a request and is part of its record; you cannot {verb} it"
            )
        if not owner:
            self._check_author(call, message, verb)
        return message

    def _check_author(self, call: Calling, message: Message, verb: str) -> None:
        """Raises `OperationError` for an edit or deletion that the settings forbid the author."""
        if call.kind != "human" and not self.config.agents:
            raise forbidden(f"only people can {verb} messages in this network")
        within = self.config.within
        if within is not None and self.host.now() > message.sent_at.timestamp() + within:
            raise forbidden(
                f"{message.id}: you can {verb} a message only within {within:g} s after sending it"
            )


def _content_of(args: EditMessage) -> tuple[JsonValue, str | None]:
    """The new content, and its text representation. Raises `OperationError`."""
    if (args.text is None) == (args.content is None):
        raise bad_request("text: give either text or content")
    if args.text is None:
        return args.content, args.text_representation
    if args.text_representation is not None:
        raise bad_request("text_representation: allowed only with content")
    return args.text, None


def _is_author(call: Calling, message: Message) -> bool:
    # An agent must not change the words of a person who took it over: they stay marked as theirs.
    return call.participant == message.author


def _check_original(message: Message) -> None:
    """Raises `OperationError` for a message that amends another."""
    if message.amends is not None:
        of = message.amends.message_id
        raise bad_request(f"{message.id} is an edit of {of}; use {of} instead")


def _subject(message: Message) -> int:
    """The seq of the original message, whose latest edit determines how this one is shown."""
    if message.amends is None:
        return message.seq
    return parse_message_id(message.amends.message_id) or message.seq


def _latest_version(message: Message, newest: Message | None) -> Message:
    if newest is None or newest.amends is None:
        return message
    if message.sender_kind == "system" and newest.amends.kind == "edited":
        return message  # a notice stands for a damaged message, and has not its author
    if message.amends is None:
        return amended(message, [newest])
    if newest.amends.kind == "deleted" and message.amends.kind == "edited":
        return amended(message, [newest])  # an edit before the deletion is hidden, too
    return message


def _version(message: Message) -> MessageVersion:
    return MessageVersion(
        seq=message.seq,
        kind=message.amends.kind if message.amends is not None else "sent",
        by=message.sender_id,
        sent_by=message.sent_by,
        at=message.sent_at,
        content=message.content,
        text_representation=message.text_representation,
    )
