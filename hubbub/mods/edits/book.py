"""The rows of the mod `edits`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import islice

from hubbub.ids import parse_message_id
from hubbub.mods.host import Host
from hubbub.mods.rows import Statement
from hubbub.protocol.messages import Amendment, Message

__all__ = ["Book", "added"]

_AT_ONCE = 50
"""Messages that one statement asks about."""
_NEWEST = """SELECT message, body, outside, max(seq) FROM edits_amendment
WHERE message IN ({}) GROUP BY message"""
_NEWEST_OF_ONE = _NEWEST.format("?")
_NEWEST_OF_SEVERAL = _NEWEST.format(", ".join("?" * _AT_ONCE))
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


class Book:
    """What was edited and deleted, as it is durable."""

    def __init__(self, host: Host):
        self._host = host

    async def empty(self) -> bool:
        """Whether nothing was ever edited."""
        return not await self._host.rows("SELECT 1 FROM edits_amendment LIMIT 1")

    async def newest(self, messages: Collection[int]) -> Mapping[int, Message]:
        """By message (seq): the last edit of it, or its deletion."""
        found: dict[int, Message] = {}
        seqs = iter(dict.fromkeys(messages))
        while part := tuple(islice(seqs, _AT_ONCE)):
            padded = (*part, *[-1] * (_AT_ONCE - len(part))) if len(part) > 1 else part
            sql = _NEWEST_OF_SEVERAL if len(part) > 1 else _NEWEST_OF_ONE
            for message, body, outside, _ in await self._host.rows(sql, *padded):
                last = Message.model_validate_json(body)
                found[message] = last.model_copy(update={"outside": bool(outside)})
        return found

    async def count(self, message: int) -> int:
        """How often a message was edited."""
        sql = "SELECT count(*) FROM edits_amendment WHERE message = ?"
        (row,) = await self._host.rows(sql, message)
        return int(row[0])

    async def of(self, message: int, before: int, limit: int) -> Sequence[Message]:
        """The last `limit` edits of a message before this position (seq), oldest first."""
        rows = await self._host.rows(
            "SELECT body FROM edits_amendment WHERE message = ? AND seq < ? "
            "ORDER BY seq DESC LIMIT ?",
            message,
            before,
            limit,
        )
        return [Message.model_validate_json(body) for (body,) in reversed(rows)]
