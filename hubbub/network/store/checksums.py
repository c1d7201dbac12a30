"""Checksums of the log's entries: what cannot be proven whole is refused, with its place."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Sequence

from hubbub.errors import LogDamaged
from hubbub.network.records import MessageRow

__all__ = [
    "ENTRY",
    "REMEDY",
    "check_end",
    "damaged",
    "entry_sum",
    "log_end",
    "proven_body",
    "with_sum",
]

ENTRY = (
    "m.seq, m.thread_no, m.tseq, m.scope, CAST(m.sender AS BLOB), CAST(m.cid AS BLOB), m.digest, "
    "CAST(m.body AS BLOB), m.sum"
)
"""What `proven_body` looks at, of a message called `m`. Texts as bytes: damaged ones do not decode.
"""
REMEDY = "put a backup in its place (`hubbub restore`), or name another file as the store"


def entry_sum(*row: object) -> int:
    """The checksum of a `MessageRow`, over all of it. CRC-32 notices every single flipped bit."""
    return zlib.crc32(b" ".join(map(_as_bytes, row)))


def with_sum(row: MessageRow) -> tuple[str | int | None, ...]:
    """The row as it is written. What costs time here is paid by every message."""
    seq, thread_no, tseq, scope, sender, cid, digest, body = row
    text = f"{seq} {thread_no} {tseq} {scope} {sender} {cid} {digest} {body}"
    return (seq, thread_no, tseq, scope, sender, cid, digest, body, zlib.crc32(text.encode()))


def proven_body(db: sqlite3.Connection, seq: int, entry: Sequence[object] | None) -> bytes:
    """The body of the entry that was read as `ENTRY` at `seq`. Raises `LogDamaged`."""
    if entry is not None and entry[0] == seq and entry_sum(*entry[:8]) == entry[8]:
        body = entry[7]
        if isinstance(body, bytes):
            return body
    raise damaged(db, seq, entry)


def damaged(db: sqlite3.Connection, seq: int, entry: Sequence[object] | None) -> LogDamaged:
    """The error for what stands at `seq`, or is missing there."""
    if entry is None or entry[0] is None:
        return LogDamaged(seq, f"message m{seq} is missing in the log")
    row = db.execute("SELECT CAST(id AS BLOB) FROM thread WHERE no = ?", (entry[1],)).fetchone()
    thread = f" of {row[0].decode(errors='replace')}" if row else ""
    return LogDamaged(seq, f"message m{seq}{thread} is damaged in the log and is not shown")


def _as_bytes(value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def log_end(db: sqlite3.Connection) -> int:
    """Where the log ends, as was written with its last batch."""
    (end,) = db.execute("SELECT seq FROM log_end").fetchone()
    return int(end)


_LAST = 10_000
"""Entries at the end of the log that a start counts; `hubbub doctor --log` reads all."""


def check_end(db: sqlite3.Connection, name: str) -> None:
    """Raises `LogDamaged` if the log of the store `name` does not end where it was last written,
    or has a hole there."""
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
    raise LogDamaged(seq, f"{name} is damaged: {text}; {REMEDY}")
