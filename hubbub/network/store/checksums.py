"""Checksums of the log's entries: a damaged entry is refused, with its position."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Sequence
from contextlib import suppress

from msgspec.msgpack import Encoder

from hubbub.errors import LogDamaged
from hubbub.network.records import MessageRow
from hubbub.network.store.database import Database
from hubbub.protocol import thread_ids

__all__ = [
    "ENTRY",
    "REMEDY",
    "check_end",
    "checksum",
    "damage_notice",
    "damaged",
    "entry_sum",
    "is_page_destroyed",
    "log_end",
    "proven_body",
    "unreadable_notice",
]

ENTRY = (
    "m.seq, m.thread_no, m.tseq, m.scope, CAST(m.sender AS BLOB), CAST(m.cid AS BLOB), m.digest, "
    "CAST(m.recipient AS BLOB), CAST(m.reason AS BLOB), CAST(m.reply AS BLOB), "
    "CAST(m.body AS BLOB), m.sum"
)
"""The columns that `proven_body` checks, of a message aliased `m`. Texts as bytes, since damaged
ones do not decode."""
_encode = Encoder().encode

REMEDY = "restore a backup (`hubbub network restore`), or configure another file as the store"


def checksum(row: MessageRow) -> int:
    """The checksum of a whole row: CRC-32, which detects any single flipped bit, and is cheap, as
    every message pays for it."""
    return zlib.crc32(_encode(row))


def entry_sum(entry: Sequence[object]) -> int:
    """The checksum of a row read as `ENTRY`; -1 if it is not valid."""
    *columns, body = entry[:-1]
    try:
        row = [each.decode() if isinstance(each, bytes) else each for each in columns]
    except UnicodeDecodeError:
        return -1
    return zlib.crc32(_encode((*row, body)))


def proven_body(db: Database, seq: int, entry: Sequence[object] | None) -> bytes:
    """The body of the entry read as `ENTRY` at `seq`. Raises `LogDamaged`."""
    if entry is not None and entry[0] == seq and entry_sum(entry) == entry[-1]:
        body = entry[-2]
        if isinstance(body, bytes):
            return body
    raise damaged(db, seq, entry)


def damaged(db: Database, seq: int, entry: Sequence[object] | None) -> LogDamaged:
    """The error for a damaged or missing entry at `seq`."""
    if entry is None or entry[0] is None:
        return LogDamaged(seq, f"message m{seq} is missing in the log")
    thread = _thread(db, entry[1])
    text = f"message m{seq}{f' of {thread}' if thread else ''}{_DAMAGED}"
    return LogDamaged(seq, text, damage_notice(db, seq, entry[1], entry[2]))


_DAMAGED = " is damaged in the log and is not shown"


def damage_notice(db: Database, seq: int, thread_no: object, tseq: object) -> bytes | None:
    """The body of a message of the hub that takes the place of a damaged one in lists, so that its
    readers know about it and can read on. None if the thread is not known."""
    thread = _thread(db, thread_no)
    if thread is None:
        return None
    kind = thread_ids.kind_of(thread)
    recipients = {"recipients": thread_ids.members_of(thread)} if kind == "direct" else {}
    notice = {
        "id": f"m{seq}",
        "seq": seq,
        "thread_id": thread,
        "tseq": tseq,
        "sender_id": "hub",
        "sender_kind": "system",
        "type": kind,
        **recipients,
        "content": f"Message m{seq}{_DAMAGED}.",
        "interaction_id": f"i{seq}",
        "hop": 0,
        "sent_at": _time_near(db, seq),
    }
    return json.dumps(notice, separators=(",", ":")).encode()


def unreadable_notice(db: Database, seq: int) -> tuple[int, bytes] | None:
    """The thread of a message on a destroyed page, and the notice that takes its place; None if the
    index does not have it. Reads the whole index, which is seldom needed."""
    row = db.execute("SELECT thread_no, tseq FROM by_thread WHERE seq = ?", (seq,)).fetchone()
    notice = damage_notice(db, seq, *row) if row else None
    return None if notice is None else (row[0], notice)


def _thread(db: Database, number: object) -> str | None:
    row = db.execute("SELECT CAST(id AS BLOB) FROM thread WHERE no = ?", (number,)).fetchone()
    return row[0].decode(errors="replace") if row else None


_NEAR = 50


def _time_near(db: Database, seq: int) -> str:
    """When a message was sent, from an intact one near it: a destroyed page has several."""
    sql = f"SELECT {ENTRY} FROM message AS m WHERE seq = ?"
    for near in (*range(seq - 1, max(seq - _NEAR, 0), -1), *range(seq + 1, seq + _NEAR)):
        with suppress(ValueError, KeyError, sqlite3.DatabaseError):
            entry = db.execute(sql, (near,)).fetchone()
            if entry is not None and entry_sum(entry) == entry[-1]:
                return str(json.loads(entry[-2])["sent_at"])
    return "1970-01-01T00:00:00.000Z"


def is_page_destroyed(error: Exception) -> bool:
    """Whether a page of SQLite's file cannot be read."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_CORRUPT


def log_end(db: Database) -> int:
    """The last position, which SQLite records with the last message."""
    row = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'message'").fetchone()
    return int(row[0]) if row else 0


_LAST = 10_000
"""Entries at the end of the log that are counted at start; `hubbub network doctor --log` reads
all."""


def check_end(db: Database, name: str, remedy: str = REMEDY) -> None:
    """Raises `LogDamaged` if the log of the store `name` does not end at the recorded position, or
    has a gap near its end."""
    (head,) = db.execute("SELECT coalesce(max(seq), 0) FROM message").fetchone()
    end = log_end(db)
    start = max(end - _LAST, 0)
    last = "SELECT {} FROM message WHERE seq > ? AND seq <= ?"
    (count,) = db.execute(last.format("count(*)"), (start, end)).fetchone()
    if head == end and count == end - start:
        return
    there = {seq for (seq,) in db.execute(last.format("seq"), (start, end))}
    seq = next((seq for seq in range(start + 1, end + 1) if seq not in there), end + 1)
    text = f"its log was written up to m{end}" + ("" if seq > end else f" and lacks m{seq}")
    raise LogDamaged(seq, f"{name} is damaged: {text}; {remedy}")
