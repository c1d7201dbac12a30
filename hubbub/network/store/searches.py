"""Finding messages by what their bodies say, in bounded parts of the log.

No index knows mentions and interactions: few ask, and every message would pay. SQLite itself looks
through the bodies, in few statements: around each of them the thread lets the interpreter go and
must win it back. What it finds by its text is then read as JSON, for content may quote anything. A
page ends before a damaged message; one that begins with it is refused (`LogDamaged`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from hubbub.errors import LogDamaged
from hubbub.network.store.database import Database, snapshot
from hubbub.network.store.index import indexed_upto
from hubbub.network.store.reads import PAGE_BYTES, message
from hubbub.network.stored import StoredInteraction, StoredMentions

__all__ = ["SEARCH_ENTRIES", "interaction", "mentions"]

SEARCH_ENTRIES = 10_000
"""Entries of the log, or messages of a participant, that one call looks at."""
SEARCH_BYTES = 32 * 1024**2
"""The same in bytes of bodies, once a part has passed it."""
_PART = 1000
"""Entries that one statement looks at."""

Rows = list[list[int]]


# Mentions -------------------------------------------------------------------------------------

_NAMED_IN_TAIL = """
SELECT m.seq FROM message m LEFT JOIN delivery d ON d.seq = m.seq AND d.participant = :me
WHERE m.seq > :indexed AND m.seq < :before AND (m.recipient = :me OR d.seq IS NOT NULL)
ORDER BY m.seq DESC LIMIT :limit
"""
_NAMED = """
SELECT seq FROM by_participant WHERE participant = :me AND seq < :before
ORDER BY seq DESC LIMIT :limit
"""
_LOOK_AT = """
SELECT min(m.seq), count(*), sum(length(CAST(m.body AS BLOB))),
       json_group_array(m.seq) FILTER (WHERE
           instr(m.body, '"mentions":') > 0 AND instr(m.body, :name) > 0)
FROM ({named}) AS n CROSS JOIN message AS m ON m.seq = n.seq
"""
MENTION_QUERIES = tuple(_LOOK_AT.format(named=named) for named in (_NAMED_IN_TAIL, _NAMED))
"""For a part of what reaches a participant by name: its first seq, its entries, their bytes, and
the positions of those that may mention it. First the tail of the log, then the index."""


def mentions(db: Database, participant: str, before: int, limit: int) -> StoredMentions:
    found: list[bytes] = []
    size, looked_to = 0, before
    with snapshot(db):
        for edge, seqs in _parts_backwards(db, participant, before):
            for seq in sorted(seqs, reverse=True):
                try:
                    body = message(db, seq) or b"{}"
                except LogDamaged:
                    if found:
                        return StoredMentions(found, seq + 1)
                    raise
                if participant not in json.loads(body).get("mentions", ()):
                    continue
                size += len(body)
                if found and size > PAGE_BYTES:
                    return StoredMentions(found, seq + 1)
                found.append(body)
                if len(found) == limit:
                    return StoredMentions(found, seq)
            looked_to = edge
    return StoredMentions(found, looked_to)


def _parts_backwards(
    db: Database, participant: str, before: int
) -> Iterator[tuple[int, list[int]]]:
    """How far back each part goes, and where in it a mention may be."""
    entries = size = 0
    span = {
        "me": participant,
        "name": f'"{participant}"',
        "indexed": indexed_upto(db, "by_participant"),
        "before": before,
        "limit": _PART,
    }
    for sql in MENTION_QUERIES:
        while entries < SEARCH_ENTRIES and size < SEARCH_BYTES:
            first, count, length, seqs = db.execute(sql, span).fetchone()
            entries, size = entries + count, size + (length or 0)
            span["before"] = first if count == _PART else span["before"]
            if count:
                yield first, json.loads(seqs)
            if count < _PART:
                break
        else:
            return
    yield 1, []


# Interactions ---------------------------------------------------------------------------------

INTERACTION_QUERY = """
SELECT sum(length(CAST(body AS BLOB))), json_group_array(seq) FILTER (WHERE instr(body, ?) > 0)
FROM message WHERE seq > ? AND seq <= ?
"""


def interaction(db: Database, interaction: str, after: int, upto: int) -> StoredInteraction:
    found: list[tuple[int, bytes]] = []
    size, looked_to = 0, min(after, upto)
    with snapshot(db):
        for edge, seqs in _parts_forwards(db, interaction, after, upto):
            for seq in seqs:
                (thread_no,) = db.execute(
                    "SELECT thread_no FROM message WHERE seq = ?", (seq,)
                ).fetchone()
                try:
                    body = message(db, seq) or b"{}"
                except LogDamaged:
                    if found:
                        return StoredInteraction(found, seq - 1)
                    raise
                if json.loads(body).get("interaction_id") != interaction:
                    continue
                size += len(body)
                if found and size > PAGE_BYTES:
                    return StoredInteraction(found, seq - 1)
                found.append((thread_no, body))
            looked_to = edge
    return StoredInteraction(found, looked_to)


def _parts_forwards(
    db: Database, interaction: str, after: int, upto: int
) -> Iterator[tuple[int, list[int]]]:
    """How far each part goes, and where in it a message of the interaction may be."""
    size, last = 0, min(upto, after + SEARCH_ENTRIES)
    while after < last and size < SEARCH_BYTES:
        end = min(last, after + _PART)
        length, seqs = db.execute(
            INTERACTION_QUERY, (f'"interaction_id":"{interaction}"', after, end)
        ).fetchone()
        size, after = size + (length or 0), end
        yield after, json.loads(seqs)
