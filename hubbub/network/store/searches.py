"""Searches message bodies, in bounded parts of the log.

Mentions and interactions have no index: such queries are rare, and every message would pay for it.
SQLite scans the bodies, in few statements, as around each one the thread releases the GIL and must
reacquire it. Matches are then parsed as JSON, as content can quote anything. A damaged message with
a match is replaced by a notice.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from hubbub.errors import LogDamaged
from hubbub.network.store.database import Database, snapshot
from hubbub.network.store.index import indexed_upto
from hubbub.network.store.reads import PAGE_BYTES, message
from hubbub.network.stored import StoredInteraction, StoredMentions

__all__ = ["SEARCH_ENTRIES", "interaction", "mentions"]

SEARCH_ENTRIES = 10_000
"""Entries of the log, or messages of a participant, that one call scans."""
SEARCH_BYTES = 32 * 1024**2
"""Bytes of bodies after which a call scans no further part."""
_PART = 1000
"""Entries that one statement scans."""

Rows = list[list[int]]


def _matching(db: Database, seq: int, matches: Callable[[Mapping[str, Any]], bool]) -> bytes | None:
    """The body of a message that matches, or the notice that it is damaged."""
    try:
        body = message(db, seq) or b"{}"
    except LogDamaged as damage:
        if damage.notice is None:
            raise
        return damage.notice
    return body if matches(json.loads(body)) else None


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
_SCAN = """
SELECT min(m.seq), count(*), sum(length(CAST(m.body AS BLOB))),
       json_group_array(m.seq) FILTER (WHERE
           instr(m.body, '"mentions":') > 0 AND instr(m.body, :name) > 0)
FROM ({named}) AS n CROSS JOIN message AS m ON m.seq = n.seq
"""
MENTION_QUERIES = tuple(_SCAN.format(named=named) for named in (_NAMED_IN_TAIL, _NAMED))
"""For a part of the messages addressed to a participant: first seq, number of entries, their bytes,
and the positions that may mention it. First for the tail of the log, then for the index."""


def mentions(db: Database, participant: str, before: int, limit: int) -> StoredMentions:
    matches: list[bytes] = []
    size, searched_to = 0, before
    with snapshot(db):
        for edge, seqs in _parts_backwards(db, participant, before):
            for seq in sorted(seqs, reverse=True):
                body = _matching(db, seq, lambda found: participant in found.get("mentions", ()))
                if body is None:
                    continue
                size += len(body)
                if matches and size > PAGE_BYTES:
                    return StoredMentions(matches, seq + 1)
                matches.append(body)
                if len(matches) == limit:
                    return StoredMentions(matches, seq)
            searched_to = edge
    return StoredMentions(matches, searched_to)


def _parts_backwards(
    db: Database, participant: str, before: int
) -> Iterator[tuple[int, list[int]]]:
    """The start of each part, and the positions in it that may mention the participant."""
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
    matches: list[tuple[int, bytes]] = []
    size, searched_to = 0, min(after, upto)
    with snapshot(db):
        for edge, seqs in _parts_forwards(db, interaction, after, upto):
            for seq in seqs:
                (thread_no,) = db.execute(
                    "SELECT thread_no FROM message WHERE seq = ?", (seq,)
                ).fetchone()
                body = _matching(db, seq, lambda m: m.get("interaction_id") == interaction)
                if body is None:
                    continue
                size += len(body)
                if matches and size > PAGE_BYTES:
                    return StoredInteraction(matches, seq - 1)
                matches.append((thread_no, body))
            searched_to = edge
    return StoredInteraction(matches, searched_to)


def _parts_forwards(
    db: Database, interaction: str, after: int, upto: int
) -> Iterator[tuple[int, list[int]]]:
    """The end of each part, and the positions in it that may belong to the interaction."""
    size, last = 0, min(upto, after + SEARCH_ENTRIES)
    while after < last and size < SEARCH_BYTES:
        end = min(last, after + _PART)
        length, seqs = db.execute(
            INTERACTION_QUERY, (f'"interaction_id":"{interaction}"', after, end)
        ).fetchone()
        size, after = size + (length or 0), end
        yield after, json.loads(seqs)
