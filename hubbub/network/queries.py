"""Queries to a store, beside reading the log itself. A query is a frozen object whose type
parameter is the type of its answer:

    turn = await store.read(TurnById("bob-m7"))
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from hubbub.mods.operation import Value
from hubbub.network.stored import (
    OpenWake,
    PendingRow,
    Settled,
    SpentInTurns,
    StoredAccount,
    StoredInteraction,
    StoredMemory,
    StoredMentions,
    StoredPrompts,
    StoredSpending,
    StoredTurn,
    StoredWake,
)

__all__ = [
    "AccountOf",
    "ApprovalById",
    "InteractionMessages",
    "IsMember",
    "LatestApprovals",
    "LatestRequests",
    "LatestTurns",
    "MembersAt",
    "MemoriesOf",
    "MemoryValue",
    "MentionsOf",
    "MissingParts",
    "ModSelect",
    "ModsWithTables",
    "OpenWakes",
    "PendingWakes",
    "PromptsOf",
    "Query",
    "RequestAt",
    "SettledCall",
    "SpendingSince",
    "SpentInTurnsSince",
    "TokenHashes",
    "TokenOwner",
    "TokensByParticipant",
    "TurnById",
    "TurnsById",
    "WakeOf",
    "WakesAt",
]

T_co = TypeVar("T_co", covariant=True)


class Query(Struct, Generic[T_co], frozen=True):
    """A query to a store; its fields are the arguments, in order."""


# Messages and their readers -------------------------------------------------------------------


class IsMember(Query[bool], frozen=True):
    """Whether a message with this scope and seq reached the participant as a member."""

    participant: str
    scope: int
    seq: int


class MembersAt(Query[Collection[str]], frozen=True):
    """The participants that a message with this scope and seq reached as members."""

    scope: int
    seq: int


class MentionsOf(Query[StoredMentions], frozen=True):
    """The last `limit` messages with seq < `before` that mention the participant.

    One call searches a bounded part of the log and returns at most about 256 KiB.
    """

    participant: str
    before: int
    limit: int


class InteractionMessages(Query[StoredInteraction], frozen=True):
    """The messages in (after, upto] that belong to the interaction.

    One call reads a bounded part of the log forward and returns at most about 256 KiB.
    """

    interaction: str
    after: int
    upto: int


class SettledCall(Query[Settled | None], frozen=True):
    """The outcome of the sender's earlier call with this cid."""

    sender: str
    cid: str


# Wakes and turns ------------------------------------------------------------------------------


class PendingWakes(Query[Sequence[PendingRow]], frozen=True):
    """Wakes of the agent with seq <= `upto` that are not settled, oldest first."""

    agent: str
    upto: int


class OpenWakes(Query[Sequence[OpenWake]], frozen=True):
    """As `PendingWakes`, without reading messages."""

    agent: str
    upto: int


class WakeOf(Query[StoredWake | None], frozen=True):
    """How the message at `seq` addressed the participant; None if it did not."""

    participant: str
    seq: int


class WakesAt(Query[Mapping[tuple[int, str], StoredWake]], frozen=True):
    """How these messages addressed participants, sorted by seq and participant."""

    seqs: Sequence[int]


class TurnById(Query[StoredTurn | None], frozen=True):
    turn: str


class LatestTurns(Query[Sequence[StoredTurn]], frozen=True):
    """The latest turns in the order of their first start, newest first. `before`: only turns that
    began before this one; none if it does not exist. `agent` None: of all agents.
    """

    agent: str | None
    limit: int
    before: str | None = None


class TurnsById(Query[Sequence[StoredTurn]], frozen=True):
    """The turns among `ids` that have begun, oldest first."""

    ids: Sequence[str]


class PromptsOf(Query[StoredPrompts], frozen=True):
    """The prompts of a turn, assembled from their parts."""

    turn: str


class MissingParts(Query[Sequence[bytes]], frozen=True):
    """The digests, of parts of an agent's prompts, that are not stored."""

    agent: str
    digests: Sequence[bytes]


# Accounts, approvals, requests ----------------------------------------------------------------


class AccountOf(Query[StoredAccount | None], frozen=True):
    """The account of the interaction opened at this position; None if nothing was ever added."""

    interaction: int


class SpendingSince(Query[Sequence[StoredSpending]], frozen=True):
    """Daily spending from `since` (YYYY-MM-DD) on, latest day first, optionally of one agent or
    thread."""

    since: str
    agent: str | None = None
    thread: int | None = None


class SpentInTurnsSince(Query[Sequence[SpentInTurns]], frozen=True):
    """The spending of turns that began at `since` or later, by model and person."""

    since: int
    """Seconds since 1970."""


class ApprovalById(Query[bytes | None], frozen=True):
    """An approval as JSON."""

    id: str


class LatestApprovals(Query[Sequence[bytes]], frozen=True):
    """The latest approvals as JSON, newest first; `agent` None: of all agents."""

    agent: str | None
    limit: int


class RequestAt(Query[bytes | None], frozen=True):
    """The request opened by the message at this position, as JSON."""

    seq: int


class LatestRequests(Query[Sequence[bytes]], frozen=True):
    """The latest requests as JSON, newest first, with the participant as requester or worker. None
    means any participant, or any state."""

    participant: str | None
    state: str | None
    limit: int


# Memory, tokens, mods -------------------------------------------------------------------------


class MemoryValue(Query[bytes | None], frozen=True):
    """The participant's memory under the key, as JSON."""

    participant: str
    key: str


class MemoriesOf(Query[Sequence[StoredMemory]], frozen=True):
    """The participant's memories, by key; values over `short` bytes are left out."""

    participant: str
    short: int


class TokenHashes(Query[Sequence[str]], frozen=True):
    """SHA-256 (hex) of the participant's tokens, never from a cache."""

    participant: str


class TokenOwner(Query["str | None"], frozen=True):
    """The participant whose token has this SHA-256 (hex), if any."""

    sha256: str


class TokensByParticipant(Query[Mapping[str, int]], frozen=True):
    """The number of tokens of each participant that has any, never from a cache."""


class ModsWithTables(Query[Sequence[str]], frozen=True):
    """The mods with tables in the store, whether or not they still run."""


class ModSelect(Query[Sequence[tuple[Value, ...]]], frozen=True):
    """Rows of a mod's own tables. Raises `ValueError` for a statement that fails, writes, or
    touches other tables (a defect of the mod).
    """

    mod: str
    sql: str
    values: Sequence[Value]
