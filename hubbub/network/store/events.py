"""Reading the log forward: one participant's messages, or all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

from hubbub.network.store.checksums import ENTRY, damaged, log_end, proven_body
from hubbub.network.store.database import Database, snapshot
from hubbub.network.store.index import indexed_upto
from hubbub.network.stored import StoredEvent

__all__ = ["EVENT_QUERIES", "LATERAL_EVENT_QUERIES", "events", "log"]

# A message addresses a participant in its own row, or in one of `delivery`. It no longer wakes an
# agent whose turn with it has ended, or an agent that lost its state would begin it again.
_NAMED = """
CASE WHEN m.recipient = :me THEN m.reason ELSE d.reason END,
CASE WHEN ended.ended_at IS NOT NULL THEN NULL WHEN m.recipient = :me THEN m.reply ELSE d.reply END
"""
_JOINED = """
LEFT JOIN delivery AS d ON d.seq = m.seq AND d.participant = :me
LEFT JOIN turn_wake AS taken ON taken.agent = :me AND taken.seq = m.seq
LEFT JOIN turn AS ended ON ended.id = taken.turn
"""

# Each scope and the deliveries select at most `limit` positions by index; the union is cut to
# `limit`, and only then are messages fetched. So a reader a million entries behind costs no more
# than any other. Own messages are removed before the cut, or a page of them would look like the
# end.
_INDEXED_EVENTS = """
SELECT page.seq, {entry}, {named}
FROM (
    SELECT seq FROM (
        SELECT i.seq FROM by_participant i {participant_message}
        WHERE i.participant = :me AND i.seq > :after AND i.seq <= :upto {not_mine}
        ORDER BY i.seq LIMIT :limit) AS page
    UNION
    SELECT found.seq FROM member {found}
    ORDER BY seq LIMIT :limit
) AS page
LEFT JOIN message AS m ON m.seq = page.seq
{joined}
ORDER BY page.seq
"""

_OF_SCOPE = """(
    SELECT i.seq FROM by_scope i {scope_message}
    WHERE i.scope = member.scope AND i.seq > max(member.since, :after)
    AND i.seq <= min(member.until, :upto) {not_mine}
    ORDER BY i.seq LIMIT :limit)"""
_MEMBER = "WHERE member.participant = :me AND member.until > :after"
_FOUND = f"CROSS JOIN message AS found {_MEMBER} AND found.seq IN {_OF_SCOPE}"
_FOUND_LATERALLY = f"CROSS JOIN LATERAL {_OF_SCOPE} AS found {_MEMBER}"

_TAIL_EVENTS = """
SELECT m.seq, {entry}, {named}
FROM message AS m {joined}
WHERE m.seq > :after AND m.seq <= :upto {not_mine}
AND (m.recipient = :me OR d.seq IS NOT NULL OR EXISTS (
    SELECT 1 FROM member WHERE member.participant = :me AND member.scope = m.scope
    AND member.since < m.seq AND member.until >= m.seq))
ORDER BY m.seq LIMIT :limit
"""


def _event_queries(own: bool, join: str) -> tuple[str, str]:
    message = "" if own else "LEFT JOIN message AS m ON m.seq = i.seq"
    parts = {
        "entry": ENTRY,
        "named": _NAMED,
        "joined": _JOINED,
        "participant_message": message,
        "scope_message": message,
        "not_mine": "" if own else "AND (m.sender <> :me OR m.sender IS NULL)",
    }
    parts["found"] = join.format_map(parts)
    return _INDEXED_EVENTS.format_map(parts), _TAIL_EVENTS.format_map(parts)


EVENT_QUERIES = {own: _event_queries(own, _FOUND) for own in (False, True)}
"""By `own`: the query of the indexed part and that of the tail."""
LATERAL_EVENT_QUERIES = {own: _event_queries(own, _FOUND_LATERALLY) for own in (False, True)}
"""The same for a database with LATERAL, which would read all messages for the other form."""


def events(
    db: Database,
    participant: str,
    after: int,
    upto: int,
    limit: int,
    own: bool,
    queries: Mapping[bool, tuple[str, str]] = EVENT_QUERIES,
) -> Sequence[StoredEvent]:
    indexed_part, tail_part = queries[own]
    rows: list[tuple[object, ...]] = []
    with snapshot(db):
        indexed = min(indexed_upto(db, "by_participant"), indexed_upto(db, "by_scope"))
        if after < indexed:
            span = {"me": participant, "after": after, "upto": min(upto, indexed), "limit": limit}
            rows = db.execute(indexed_part, span).fetchall()
        if upto > indexed and len(rows) < limit:
            left = limit - len(rows)
            span = {"me": participant, "after": max(after, indexed), "upto": upto, "limit": left}
            rows += db.execute(tail_part, span).fetchall()
        return [_event(db, row, participant) for row in rows]


def log(db: Database, after: int, upto: int, limit: int) -> Sequence[StoredEvent]:
    with snapshot(db):
        last = min(upto, log_end(db), after + limit)
        # In this form it reads no message beside these, which may be on a damaged page.
        rows = db.execute(
            f"SELECT m.seq, {ENTRY}, NULL, NULL FROM message AS m "
            "WHERE m.seq >= ? AND m.seq <= ? ORDER BY m.seq LIMIT ?",
            (after + 1, last, max(0, last - after)),
        ).fetchall()
        for expected, row in zip_longest(range(after + 1, last + 1), rows):
            if row is None or row[0] != expected:
                raise damaged(db, expected, None)
        return [_event(db, row) for row in rows]


def _event(db: Database, row: tuple[Any, ...], participant: str = "") -> StoredEvent:
    seq, *entry, reason, reply = row
    body = proven_body(db, seq, entry)
    turn = f"{participant}-m{seq}" if reply is not None else None
    return StoredEvent(seq, entry[2], entry[4].decode(), body, reason, reply, turn)
