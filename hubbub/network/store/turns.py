"""Turns as they are read back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from hubbub.network.records import DIGEST
from hubbub.network.running_turns import Lives
from hubbub.network.store.database import Database, snapshot
from hubbub.network.stored import Prompts, StoredTurn

__all__ = ["missing_parts", "prompts", "turn", "turns", "turns_called"]

_COLUMNS = (
    'id, agent, started_at, attempts, CAST(start AS BLOB), ended_at, CAST("end" AS BLOB), '
    "life, held, deaths, said"
)

MOST_CHARACTERS = 4 * 1024 * 1024
"""Of a prompt that is read back: it may name one part again and again, and so be of any size."""


def turn(db: Database, turn: str) -> StoredTurn | None:
    """A turn with its steps, by id."""
    with snapshot(db):
        row = db.execute(f"SELECT {_COLUMNS} FROM turn WHERE id = ?", (turn,)).fetchone()
        return _whole(db, row) if row else None


def turns(db: Database, agent: str | None, limit: int, before: str | None) -> Sequence[StoredTurn]:
    """The turns that began last, newest first; by `no`, because clocks may jump."""
    where = "no < (SELECT no FROM turn WHERE id = :before)" if before is not None else "true"
    if agent is not None:
        where += " AND agent = :agent"
    with snapshot(db):
        rows = db.execute(
            f"SELECT {_COLUMNS} FROM turn WHERE {where} ORDER BY no DESC LIMIT :limit",
            {"agent": agent, "before": before, "limit": limit},
        ).fetchall()
        return [_whole(db, row) for row in rows]


def turns_called(db: Database, ids: Sequence[str]) -> Sequence[StoredTurn]:
    """Those of these turns that there are, in the order in which they began."""
    sql = f"SELECT no, {_COLUMNS} FROM turn WHERE id = ?"
    with snapshot(db):
        rows = [row for id_ in set(ids) for row in db.execute(sql, (id_,))]
        return [_whole(db, row) for _, *row in sorted(rows)]


def _whole(db: Database, row: Sequence[Any]) -> StoredTurn:
    id_, agent, started_at, attempts, start, ended_at, end, life, held, deaths, said = row
    steps = db.execute("SELECT CAST(step AS BLOB) FROM turn_step WHERE turn = ? ORDER BY n", (id_,))
    sent = db.execute("SELECT seq FROM turn_sent WHERE turn = ? ORDER BY seq", (id_,))
    return StoredTurn(
        id=id_,
        agent=agent,
        started_at=started_at,
        attempts=attempts,
        start=start,
        steps=[step for (step,) in steps],
        sent=[seq for (seq,) in sent],
        ended_at=ended_at,
        end=end,
        lives=Lives(life, bool(held), deaths, said),
    )


_PART = "SELECT text FROM prompt_part WHERE agent = ? AND digest = ?"


def prompts(db: Database, turn: str) -> Prompts:
    """What the turn began with, whole."""
    with snapshot(db):
        row = db.execute("SELECT agent, system_prompt, prompt FROM turn WHERE id = ?", (turn,))
        agent, *named = row.fetchone() or ("", b"", b"")
        return Prompts(*("".join(_parts(db, agent, digests)) or None for digests in named))


def _parts(db: Database, agent: str, digests: bytes) -> Iterator[str]:
    room = MOST_CHARACTERS
    for at in range(0, len(digests), DIGEST):
        (text,) = db.execute(_PART, (agent, digests[at : at + DIGEST])).fetchone()
        yield text[:room]
        room -= len(text)
        if room < 0:
            yield f"... [cut after {MOST_CHARACTERS} characters]"
            return


def missing_parts(db: Database, agent: str, digests: Sequence[bytes]) -> Sequence[bytes]:
    """Those of these parts that are not there."""
    return [each for each in digests if db.execute(_PART, (agent, each)).fetchone() is None]
