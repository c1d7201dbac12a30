"""What may be asked of a store beside the log itself. A query is a frozen object, and its type
parameter is the type of its answer:

    turn = await store.read(TurnById("bob-m7"))
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from hubbub.mods.operation import Value
from hubbub.network.stored import (
    OpenWake,
    PendingRow,
    Prompts,
    Settled,
    SpentInTurns,
    StoredInteraction,
    StoredLedger,
    StoredMemory,
    StoredMentions,
    StoredSpending,
    StoredTurn,
    StoredWake,
)

__all__ = [
    "ApprovalById",
    "InteractionMessages",
    "IsMember",
    "LatestApprovals",
    "LatestRequests",
    "LatestTurns",
    "LedgerOf",
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


@dataclass(frozen=True, slots=True)
class Query(Generic[T_co]):
    """A question to a store; its fields are the arguments, in order."""

    __match_args__: ClassVar[tuple[str, ...]]


# Messages and their readers -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class IsMember(Query[bool]):
    """Whether a message with this scope and seq reached the participant as a member."""

    participant: str
    scope: int
    seq: int


@dataclass(frozen=True, slots=True)
class MembersAt(Query[Collection[str]]):
    """Whom a message with this scope and seq reached as members."""

    scope: int
    seq: int


@dataclass(frozen=True, slots=True)
class MentionsOf(Query[StoredMentions]):
    """The last `limit` messages with seq < `before` that reach the participant by name and mention
    it.

    Looks at a bounded part of the log in one call, and gives about 256 KiB at most.
    """

    participant: str
    before: int
    limit: int


@dataclass(frozen=True, slots=True)
class InteractionMessages(Query[StoredInteraction]):
    """The messages in (after, upto] that belong to the interaction.

    Reads the log forward, a bounded part of it in one call, and gives about 256 KiB at most.
    """

    interaction: str
    after: int
    upto: int


@dataclass(frozen=True, slots=True)
class SettledCall(Query[Settled | None]):
    """What the sender's earlier call with this cid did."""

    sender: str
    cid: str


# Wakes and turns ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PendingWakes(Query[Sequence[PendingRow]]):
    """Wakes of the agent with seq <= `upto` that are not settled, oldest first."""

    agent: str
    upto: int


@dataclass(frozen=True, slots=True)
class OpenWakes(Query[Sequence[OpenWake]]):
    """What `PendingWakes` has, without reading any message."""

    agent: str
    upto: int


@dataclass(frozen=True, slots=True)
class WakeOf(Query[StoredWake | None]):
    """How the message at `seq` reached the participant by name; None: it did not."""

    participant: str
    seq: int


@dataclass(frozen=True, slots=True)
class WakesAt(Query[Mapping[tuple[int, str], StoredWake]]):
    """How these messages reached participants by name, by seq and participant, in that order."""

    seqs: Sequence[int]


@dataclass(frozen=True, slots=True)
class TurnById(Query[StoredTurn | None]):
    turn: str


@dataclass(frozen=True, slots=True)
class LatestTurns(Query[Sequence[StoredTurn]]):
    """The latest turns, newest first; with `before`, of those that began before this turn (none if
    there is no such turn). Turns keep the order in which they first began. `agent` None: of all.
    """

    agent: str | None
    limit: int
    before: str | None = None


@dataclass(frozen=True, slots=True)
class TurnsById(Query[Sequence[StoredTurn]]):
    """Those of these turns that have begun, oldest first."""

    ids: Sequence[str]


@dataclass(frozen=True, slots=True)
class PromptsOf(Query[Prompts]):
    """The prompts of a turn, put together from their parts."""

    turn: str


@dataclass(frozen=True, slots=True)
class MissingParts(Query[Sequence[bytes]]):
    """Those of these parts of an agent's prompts that are not stored, by their digests."""

    agent: str
    digests: Sequence[bytes]


# Accounts, approvals, requests ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LedgerOf(Query[StoredLedger | None]):
    """The account of the interaction that the message at this position opened; None: nothing was
    ever added to it."""

    interaction: int


@dataclass(frozen=True, slots=True)
class SpendingSince(Query[Sequence[StoredSpending]]):
    """The accounts of the days from `since` on (YYYY-MM-DD), latest day first; of one agent or
    thread only, where they are given."""

    since: str
    agent: str | None = None
    thread: int | None = None


@dataclass(frozen=True, slots=True)
class SpentInTurnsSince(Query[Sequence[SpentInTurns]]):
    """What turns that began at `since` or later have spent, by model and person."""

    since: int
    """Seconds since 1970."""


@dataclass(frozen=True, slots=True)
class ApprovalById(Query[bytes | None]):
    """An approval as JSON."""

    id: str


@dataclass(frozen=True, slots=True)
class LatestApprovals(Query[Sequence[bytes]]):
    """The latest approvals as JSON, newest first; `agent` None: of all."""

    agent: str | None
    limit: int


@dataclass(frozen=True, slots=True)
class RequestAt(Query[bytes | None]):
    """The request that the message at this position made, as JSON."""

    seq: int


@dataclass(frozen=True, slots=True)
class LatestRequests(Query[Sequence[bytes]]):
    """The latest requests as JSON, newest first: of whom the participant is requester or worker;
    None: of everybody, or in any state."""

    participant: str | None
    state: str | None
    limit: int


# Memory, tokens, mods -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MemoryValue(Query[bytes | None]):
    """What the participant remembers under the key, as JSON."""

    participant: str
    key: str


@dataclass(frozen=True, slots=True)
class MemoriesOf(Query[Sequence[StoredMemory]]):
    """All that the participant remembers, by key; values over `short` bytes are left out."""

    participant: str
    short: int


@dataclass(frozen=True, slots=True)
class TokenHashes(Query[Sequence[str]]):
    """SHA-256 (hex) of the participant's tokens, always as the store has them now."""

    participant: str


@dataclass(frozen=True, slots=True)
class TokenOwner(Query["str | None"]):
    """Whose token has this SHA-256 (hex); None: nobody's."""

    sha256: str


@dataclass(frozen=True, slots=True)
class TokensByParticipant(Query[Mapping[str, int]]):
    """How many tokens those have who have any, by name; as the store has them now."""


@dataclass(frozen=True, slots=True)
class ModsWithTables(Query[Sequence[str]]):
    """The mods that have tables here, whether or not they still run."""


@dataclass(frozen=True, slots=True)
class ModSelect(Query[Sequence[tuple[Value, ...]]]):
    """Rows of a mod's own tables. Raises `ValueError` for a statement that fails, writes, or
    touches what is not the mod's (a defect of the mod).
    """

    mod: str
    sql: str
    values: Sequence[Value]
