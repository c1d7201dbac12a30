"""Which function answers which query."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from hubbub.network import queries
from hubbub.network.queries import Query
from hubbub.network.store import control, mods, reads, searches, turns

__all__ = ["answer"]

T = TypeVar("T")

# Each function is called with the fields of its query, in order: no type checker follows that.
_ANSWERS: Mapping[type[Query[Any]], Callable[..., Any]] = {
    queries.IsMember: reads.was_member,
    queries.MembersAt: reads.members_at,
    queries.MentionsOf: searches.mentions,
    queries.InteractionMessages: searches.interaction,
    queries.SettledCall: reads.settled,
    queries.PendingWakes: reads.pending,
    queries.OpenWakes: reads.open_wakes,
    queries.WakeOf: reads.wake,
    queries.WakesAt: reads.wakes,
    queries.TurnById: turns.turn,
    queries.LatestTurns: turns.turns,
    queries.TurnsById: turns.turns_called,
    queries.PromptsOf: turns.prompts,
    queries.MissingParts: turns.missing_parts,
    queries.LedgerOf: control.ledger,
    queries.SpendingSince: control.spending,
    queries.SpentInTurnsSince: control.spent_in_turns,
    queries.ApprovalById: control.approval,
    queries.LatestApprovals: control.approvals,
    queries.RequestAt: control.request,
    queries.LatestRequests: control.requests,
    queries.MemoryValue: reads.memory,
    queries.MemoriesOf: reads.memories,
    queries.TokenHashes: reads.token_hashes,
    queries.TokenOwner: reads.token_owner,
    queries.TokensByParticipant: reads.token_counts,
    queries.ModsWithTables: mods.with_tables,
    queries.ModSelect: mods.mod_rows,
}


def answer(db: sqlite3.Connection, query: Query[T]) -> T:
    """The answer to a query, read in the thread of `db`."""
    fields = [getattr(query, name) for name in query.__match_args__]
    result: T = _ANSWERS[type(query)](db, *fields)
    return result
