"""Queries about approvals, requests and accounts."""

from __future__ import annotations

from collections.abc import Sequence

from hubbub.network.store.database import Database, snapshot
from hubbub.network.stored import (
    SpentInTurns,
    StoredAccount,
    StoredSpending,
)

__all__ = [
    "approval",
    "approvals",
    "ledger",
    "request",
    "requests",
    "spending",
    "spent_in_turns",
]


# SQLite uses the partial index on unused approvals only if its WHERE clause is repeated literally.
OPEN_APPROVALS_QUERY = """
SELECT CAST(body AS BLOB) FROM approval WHERE no IN (
    SELECT no FROM approval WHERE state = 'pending'
    UNION ALL
    SELECT a.no FROM turn t CROSS JOIN approval a ON a.turn = t.id
    WHERE t.ended_at IS NULL AND a.state IN ('approved', 'denied', 'expired')
) ORDER BY no
"""
OPEN_REQUESTS_QUERY = "SELECT CAST(body AS BLOB) FROM request WHERE state = 'open' ORDER BY seq"
LATEST_DAY_QUERY = "SELECT coalesce(max(day), '') FROM spending"


# Accounts -------------------------------------------------------------------------------------


def ledger(db: Database, interaction: int) -> StoredAccount | None:
    """The account of an interaction, with sorted names."""
    with snapshot(db):
        sums = db.execute(
            "SELECT wakes, turns, tokens_in, tokens_out, usd FROM ledger WHERE interaction = ?",
            (interaction,),
        ).fetchone()
        if sums is None:
            return None
        names: dict[str, list[str]] = {"agent": [], "limit": []}
        for kind, name in db.execute(
            "SELECT kind, name FROM ledger_name WHERE interaction = ? ORDER BY kind, name",
            (interaction,),
        ):
            names[kind].append(name)
    return StoredAccount._make((*sums, tuple(names["agent"]), tuple(names["limit"])))


SPENDING_QUERY = """
SELECT day, agent, thread_no, wakes, turns, tokens_in, tokens_out, usd FROM spending
WHERE day >= :since AND (:agent IS NULL OR agent = :agent)
  AND (:thread IS NULL OR thread_no = :thread)
ORDER BY day DESC, agent, thread_no
"""


def spending(
    db: Database, since: str, agent: str | None, thread: int | None
) -> Sequence[StoredSpending]:
    rows = db.execute(SPENDING_QUERY, {"since": since, "agent": agent, "thread": thread})
    return [StoredSpending._make(row) for row in rows]


SPENT_IN_TURNS_QUERY = """
WITH spent AS (
    SELECT turn.id AS id,
        coalesce(json_extract(step, '$.model'), json_extract(turn.start, '$.model'), '') AS model,
        CAST(substr(json_extract(turn.start, '$.messages[0]'), 2) AS BIGINT) AS woken_by,
        CAST(json_extract(step, '$.tokens_in') AS BIGINT) AS tokens_in,
        CAST(json_extract(step, '$.tokens_out') AS BIGINT) AS tokens_out,
        CAST(json_extract(step, '$.cost_usd') AS DOUBLE PRECISION) AS usd
    FROM turn JOIN turn_step ON turn_step.turn = turn.id WHERE turn.started_at >= :since
)
SELECT model, coalesce(opening.sender, ''), count(DISTINCT id),
    CAST(coalesce(sum(tokens_in), 0) AS BIGINT), CAST(coalesce(sum(tokens_out), 0) AS BIGINT),
    coalesce(sum(usd), 0.0)
FROM spent LEFT JOIN message ON message.seq = woken_by
LEFT JOIN message AS opening ON opening.seq = CAST(
    substr(json_extract(CAST(message.body AS TEXT), '$.interaction_id'), 2) AS BIGINT)
GROUP BY 1, 2
"""


def spent_in_turns(db: Database, since: int) -> Sequence[SpentInTurns]:
    rows = db.execute(SPENT_IN_TURNS_QUERY, {"since": since})
    return [SpentInTurns._make(row) for row in rows]


# Approvals ------------------------------------------------------------------------------------


def approval(db: Database, id: str) -> bytes | None:
    row = db.execute("SELECT CAST(body AS BLOB) FROM approval WHERE id = ?", (id,)).fetchone()
    return row[0] if row else None


def approvals(db: Database, agent: str | None, limit: int) -> Sequence[bytes]:
    """The latest approvals, in the order they were first requested."""
    where = "true" if agent is None else "agent = :agent"
    rows = db.execute(
        f"SELECT CAST(body AS BLOB) FROM approval WHERE {where} ORDER BY no DESC LIMIT :limit",
        {"agent": agent, "limit": limit},
    )
    return [body for (body,) in rows]


# Requests -------------------------------------------------------------------------------------


def request(db: Database, seq: int) -> bytes | None:
    row = db.execute("SELECT CAST(body AS BLOB) FROM request WHERE seq = ?", (seq,)).fetchone()
    return row[0] if row else None


# Each role selects at most `limit` positions by index; only then are bodies fetched.
_ROLE = """SELECT seq FROM (
    SELECT seq FROM request WHERE {role} = :me {state} ORDER BY seq DESC LIMIT :limit) AS {role}"""


def requests(
    db: Database, participant: str | None, state: str | None, limit: int
) -> Sequence[bytes]:
    in_state = "" if state is None else "AND state = :state"
    if participant is None:
        where = f"true {in_state}"
    else:
        roles = [_ROLE.format(role=role, state=in_state) for role in ("requester", "worker")]
        where = f"seq IN ({' UNION '.join(roles)})"
    rows = db.execute(
        f"SELECT CAST(body AS BLOB) FROM request WHERE {where} ORDER BY seq DESC LIMIT :limit",
        {"me": participant, "state": state, "limit": limit},
    )
    return [body for (body,) in rows]
