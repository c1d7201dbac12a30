"""What the disk does on its own, in the same run: no durable figure means anything without it."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from benchmarks.stats import percentile

__all__ = ["commit_ms", "describe", "fdatasync_ms"]


def fdatasync_ms(folder: Path, times: int = 200) -> list[float]:
    """Milliseconds of `times` writes of 4 KiB, each followed by fdatasync."""
    descriptor = os.open(folder / "probe", os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)

    def once() -> None:
        os.write(descriptor, b"x" * 4096)
        os.fdatasync(descriptor)

    try:
        return _timed(once, times)
    finally:
        os.close(descriptor)


def commit_ms(folder: Path, times: int = 200) -> list[float]:
    """Milliseconds of `times` transactions of one small row: SQLite, WAL, synchronous=FULL."""
    with closing(sqlite3.connect(folder / "probe.db", isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL").fetchone()
        db.execute("PRAGMA synchronous = FULL")
        db.execute("CREATE TABLE IF NOT EXISTS row (n INTEGER PRIMARY KEY, body TEXT)")
        return _timed(lambda: db.execute("INSERT INTO row (body) VALUES (?)", ("x" * 300,)), times)


def describe(values: list[float]) -> str:
    return f"p50 {percentile(values, 0.5):.2f} ms, p99 {percentile(values, 0.99):.2f} ms"


def _timed(work: Callable[[], object], times: int) -> list[float]:
    found = []
    for _ in range(times):
        started = time.perf_counter()
        work()
        found.append((time.perf_counter() - started) * 1e3)
    return found
