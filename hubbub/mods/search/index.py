"""The tables of the mod `search`: the statements that index a message, and how messages are found.

An entry of the log is one row for ever. Its text is found while the row `shows` a message: the
entry's own, or, in an edit, the one that is edited. So nothing is taken out of the full-text
table, and the order in which entries are indexed does not matter.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from hubbub.ids import parse_message_id
from hubbub.mods.host import Host
from hubbub.mods.rows import Statement
from hubbub.mods.searching import Hit, Search, indexable
from hubbub.protocol import thread_ids
from hubbub.protocol.messages import Message

__all__ = ["Index", "indexed"]

_TEXT = "INSERT INTO search_text (rowid, text) VALUES (?, ?)"
_MESSAGE = "INSERT INTO search_message VALUES (?, ?, ?, ?, ?, ?)"

# For what may be there already, or have been amended by entries that were indexed before it.
_TEXT_ONCE = """
INSERT INTO search_text (rowid, text)
SELECT ?1, ?2 WHERE NOT EXISTS (SELECT 1 FROM search_message WHERE row = ?1)
"""
_MESSAGE_ONCE = """
INSERT INTO search_message
SELECT ?1, iif(EXISTS (SELECT 1 FROM search_amendment WHERE message = ?2), NULL, ?2), ?3, ?4, ?5, ?6
WHERE NOT EXISTS (SELECT 1 FROM search_message WHERE row = ?1)
"""

# An amended message keeps its sender and time.
_AMENDED = """
INSERT OR IGNORE INTO search_message
SELECT ?1, NULL, ?3, ?4, coalesce(max(m.sender), ?5), coalesce(max(m.at), ?6)
FROM search_message AS m WHERE m.row = ?2
"""
_AMENDMENT = "INSERT OR IGNORE INTO search_amendment VALUES (?, ?, ?)"
_SHOWS = """
UPDATE search_message SET shows = iif(
    row = (SELECT max(row) FROM search_amendment WHERE message = ?1)
    AND NOT EXISTS (SELECT 1 FROM search_amendment WHERE message = ?1 AND deleted), ?1, NULL)
WHERE row = ?1 OR row IN (SELECT row FROM search_amendment WHERE message = ?1)
"""

_FOUND = """
SELECT m.shows, m.thread, m.sender, m.at, bm25(search_text) AS score
FROM search_text CROSS JOIN search_message AS m ON m.row = search_text.rowid
WHERE search_text MATCH ? AND m.shows IS NOT NULL AND m.row <= ?
    AND m.{place} IN (SELECT value FROM json_each(?)){more}
ORDER BY score, m.row DESC LIMIT ? OFFSET ?
"""


def indexed(message: Message, *, again: bool = False) -> Sequence[Statement]:
    """What is written when a message enters the log; `again`: it may be indexed already, or what
    amends it may be."""
    row, text = message.seq, indexable(_text(message))
    scope, at = thread_ids.root(message.thread_id), message.sent_at.timestamp()
    where = (scope, message.thread_id, message.sender_id, at)
    texts = [Statement(_TEXT_ONCE if again else _TEXT, (row, text))] if text else []
    amends = message.amends
    if amends is None:
        return [*texts, Statement(_MESSAGE_ONCE if again else _MESSAGE, (row, row, *where))]
    original = parse_message_id(amends.message_id) or 0
    return [
        *(() if amends.kind == "deleted" else texts),
        Statement(_AMENDED, (row, original, *where)),
        Statement(_AMENDMENT, (original, row, int(amends.kind == "deleted"))),
        Statement(_SHOWS, (original,)),
    ]


def _text(message: Message) -> str:
    names = (attachment.name for attachment in message.attachments)
    return "\n".join((message.text, *names)) if message.attachments else message.text


class Index:
    """What is indexed of the log."""

    def __init__(self, host: Host):
        self._host = host

    async def done(self, head: int) -> int:
        """The position up to which every entry is indexed."""
        ((done,),) = await self._host.rows("SELECT done FROM search_state")
        sql = "SELECT count(*) FROM search_message WHERE row > ? AND row <= ?"
        ((count,),) = await self._host.rows(sql, done, head)
        return head if count == head - done else int(done)

    async def keep(self, messages: Sequence[Message], done: int) -> None:
        """Index messages of the log, and that everything up to `done` is. Raises
        `StoreUnavailable`."""
        statements = [each for message in messages for each in indexed(message, again=True)]
        await self._host.keep([*statements, Statement("UPDATE search_state SET done = ?", (done,))])

    async def found(self, search: Search, *, whole: bool, upto: int) -> Sequence[Hit]:
        """The best messages first, without their texts. `whole`: all threads of the reader are
        meant. `upto`: entries behind this position do not count."""
        threads = {*map(thread_ids.root, search.threads)} if whole else search.threads
        more, values = search.conditions("m.sender", "m.at")
        sql = _FOUND.format(place="scope" if whole else "thread", more=more)
        places = json.dumps(sorted(threads))
        rows = await self._host.rows(
            sql, search.words.match, upto, places, *values, search.limit, search.skip
        )
        return [
            Hit("messages", f"m{seq}", thread, sender, at, "", "", -score)
            for seq, thread, sender, at, score in rows
        ]
