"""What may be asked of a store beside the log itself. A query is a frozen object, and its type
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
    """A question to a store; its fields are the arguments, in order."""


# Messages and their readers -------------------------------------------------------------------


class IsMember(Query[bool], frozen=True):
    """Whether a message with this scope and seq reached the participant as a member."""

    participant: str
    scope: int
    seq: int


class MembersAt(Query[Collection[str]], frozen=True):
    """Whom a message with this scope and seq reached as members."""

    scope: int
    seq: int


class MentionsOf(Query[StoredMentions], frozen=True):
    """The last `limit` messages with seq < `before` that reach the participant by name and mention
    it.

    Looks at a bounded part of the log in one call, and gives about 256 KiB at most.
    """

    participant: str
    before: int
    limit: int


class InteractionMessages(Query[StoredInteraction], frozen=True):
    """The messages in (after, upto] that belong to the interaction.

    Reads the log forward, a bounded part of it in one call, and gives about 256 KiB at most.
    """

    interaction: str
    after: int
    upto: int


class SettledCall(Query[Settled | None], frozen=True):
    """What the sender's earlier call with this cid did."""

    sender: str
    cid: str


# Wakes and turns ------------------------------------------------------------------------------


class PendingWakes(Query[Sequence[PendingRow]], frozen=True):
    """Wakes of the agent with seq <= `upto` that are not settled, oldest first."""

    agent: str
    upto: int


class OpenWakes(Query[Sequence[OpenWake]], frozen=True):
    """What `PendingWakes` has, without reading any message."""

    agent: str
    upto: int


class WakeOf(Query[StoredWake | None], frozen=True):
    """How the message at `seq` reached the participant by name; None: it did not."""

    participant: str
    seq: int


class WakesAt(Query[Mapping[tuple[int, str], StoredWake]], frozen=True):
    """How these messages reached participants by name, by seq and participant, in that order."""

    seqs: Sequence[int]


class TurnById(Query[StoredTurn | None], frozen=True):
    turn: str


class LatestTurns(Query[Sequence[StoredTurn]], frozen=True):
    """The latest turns, newest first; with `before`, of those that began before this turn (none if
    there is no such turn). Turns keep the order in which they first began. `agent` None: of all.
    """

    agent: str | None
    limit: int
    before: str | None = None


class TurnsById(Query[Sequence[StoredTurn]], frozen=True):
    """Those of these turns that have begun, oldest first."""

    ids: Sequence[str]


class PromptsOf(Query[StoredPrompts], frozen=True):
    """The prompts of a turn, put together from their parts."""

    turn: str


class MissingParts(Query[Sequence[bytes]], frozen=True):
    """Those of these parts of an agent's prompts that are not stored, by their digests."""

    agent: str
    digests: Sequence[bytes]


# Accounts, approvals, requests ----------------------------------------------------------------


class AccountOf(Query[StoredAccount | None], frozen=True):
    """The account of the interaction that the message at this position opened; None: nothing was
    ever added to it."""

    interaction: int


class SpendingSince(Query[Sequence[StoredSpending]], frozen=True):
    """The accounts of the days from `since` on (YYYY-MM-DD), latest day first; of one agent or
    thread only, where they are given."""

    since: str
    agent: str | None = None
    thread: int | None = None


class SpentInTurnsSince(Query[Sequence[SpentInTurns]], frozen=True):
    """What turns that began at `since` or later have spent, by model and person."""

    since: int
    """Seconds since 1970."""


class ApprovalById(Query[bytes | None], frozen=True):
    """An approval as JSON."""

    id: str


class LatestApprovals(Query[Sequence[bytes]], frozen=True):
    """The latest approvals as JSON, newest first; `agent` None: of all."""

    agent: str | None
    limit: int


class RequestAt(Query[bytes | None], frozen=True):
    """The request that the message at this position made, as JSON."""

    seq: int


class LatestRequests(Query[Sequence[bytes]], frozen=True):
    """The latest requests as JSON, newest first: of whom the participant is requester or worker;
    None: of everybody, or in any state."""

    participant: str | None
    state: str | None
    limit: int


# Memory, tokens, mods -------------------------------------------------------------------------


class MemoryValue(Query[bytes | None], frozen=True):
    """What the participant remembers under the key, as JSON."""

    participant: str
    key: str


class MemoriesOf(Query[Sequence[StoredMemory]], frozen=True):
    """All that the participant remembers, by key; values over `short` bytes are left out."""

    participant: str
    short: int


class TokenHashes(Query[Sequence[str]], frozen=True):
    """SHA-256 (hex) of the participant's tokens, always as the store has them now."""

    participant: str


class TokenOwner(Query["str | None"], frozen=True):
    """Whose token has this SHA-256 (hex); None: nobody's."""

    sha256: str


class TokensByParticipant(Query[Mapping[str, int]], frozen=True):
    """How many tokens those have who have any, by name; as the store has them now."""


class ModsWithTables(Query[Sequence[str]], frozen=True):
    """The mods that have tables here, whether or not they still run."""


class ModSelect(Query[Sequence[tuple[Value, ...]]], frozen=True):
    """Rows of a mod's own tables. Raises `ValueError` for a statement that fails, writes, or
    touches what is not the mod's (a defect of the mod).
    """

    mod: str
    sql: str
    values: Sequence[Value]
