"""Searches message bodies, in bounded parts of the log.

Mentions and interactions have no index: such queries are rare, and every message would pay for it.
SQLite scans the bodies, in few statements, as around each one the thread releases the GIL and must
reacquire it. Matches are then parsed as JSON, as content can quote anything. A damaged message with
a match is replaced by a notice, as is one on a destroyed page, which may have a match.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from hubbub.errors import LogDamaged
from hubbub.network.store.checksums import is_page_destroyed, unreadable_notice
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


def _matching(
    db: Database, seq: int, matches: Callable[[Mapping[str, Any]], bool]
) -> tuple[int, bytes] | None:
    """The thread and the body of a message that matches, or the notice that it is damaged."""
    try:
        (thread,) = db.execute("SELECT thread_no FROM message WHERE seq = ?", (seq,)).fetchone()
        body = message(db, seq) or b"{}"
    except LogDamaged as damage:
        if damage.notice is None:
            raise
        return thread, damage.notice
    except sqlite3.DatabaseError as error:
        if not is_page_destroyed(error):
            raise
        return unreadable_notice(db, seq)
    return (thread, body) if matches(json.loads(body)) else None


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
                found = _matching(db, seq, lambda m: participant in m.get("mentions", ()))
                if found is None:
                    continue
                _, body = found
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
            first, count, length, seqs = _part_backwards(db, sql, span)
            entries, size = entries + count, size + length
            span["before"] = first if count == _PART else span["before"]
            if count:
                yield first, seqs
            if count < _PART:
                break
        else:
            return
    yield 1, []


def _part_backwards(
    db: Database, sql: str, span: Mapping[str, Any]
) -> tuple[int, int, int, list[int]]:
    """The first position of a part, its number of entries and bytes, and the positions that may
    match. Halves the part to get around a destroyed page."""
    try:
        first, count, length, seqs = db.execute(sql, span).fetchone()
    except sqlite3.DatabaseError as error:
        if not is_page_destroyed(error) or sql != MENTION_QUERIES[1]:
            raise  # without the index it is not known which messages those are
        if span["limit"] == 1:
            (seq,) = db.execute(_NAMED, span).fetchone()
            return seq, 1, 0, [seq]
        half = span["limit"] // 2
        later = _part_backwards(db, sql, {**span, "limit": half})
        before = later[0] if later[1] == half else 0
        earlier = _part_backwards(
            db, sql, {**span, "limit": span["limit"] - half, "before": before}
        )
        first = earlier[0] or later[0]
        return first, earlier[1] + later[1], earlier[2] + later[2], earlier[3] + later[3]
    return first or 0, count, length or 0, json.loads(seqs)


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
                found = _matching(db, seq, lambda m: m.get("interaction_id") == interaction)
                if found is None:
                    continue
                size += len(found[1])
                if matches and size > PAGE_BYTES:
                    return StoredInteraction(matches, seq - 1)
                matches.append(found)
            searched_to = edge
    return StoredInteraction(matches, searched_to)


def _parts_forwards(
    db: Database, interaction: str, after: int, upto: int
) -> Iterator[tuple[int, list[int]]]:
    """The end of each part, and the positions in it that may belong to the interaction."""
    size, last = 0, min(upto, after + SEARCH_ENTRIES)
    while after < last and size < SEARCH_BYTES:
        end = min(last, after + _PART)
        length, seqs = _part_forwards(db, f'"interaction_id":"{interaction}"', after, end)
        size, after = size + length, end
        yield after, seqs


def _part_forwards(db: Database, text: str, after: int, end: int) -> tuple[int, list[int]]:
    """The bytes of a part, and the positions that may match. Halves the part to get around a
    destroyed page."""
    try:
        length, seqs = db.execute(INTERACTION_QUERY, (text, after, end)).fetchone()
    except sqlite3.DatabaseError as error:
        if not is_page_destroyed(error):
            raise
        if end - after == 1:
            return 0, [end]
        middle = (after + end) // 2
        earlier = _part_forwards(db, text, after, middle)
        later = _part_forwards(db, text, middle, end)
        return earlier[0] + later[0], earlier[1] + later[1]
    return length or 0, json.loads(seqs)
