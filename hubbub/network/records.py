"""Records that the hub writes to a store, in batches.

Records are tuples of SQL parameters. Those that a store also returns are in `stored`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from hubbub.errors import OperationError
from hubbub.mods.operation import Statement
from hubbub.network.running_turns import NO_LIVES, TurnProcesses
from hubbub.network.stored import (
    StoredChannel,
    StoredMark,
    StoredMember,
    StoredSpending,
    StoredStop,
    StoredTakeover,
)
from hubbub.protocol.codes import ErrorCode

__all__ = [
    "DIGEST",
    "AccountChanged",
    "ApprovalSaved",
    "Batch",
    "CallSettled",
    "CursorMoved",
    "Delivery",
    "MemberLeft",
    "MemoryDeleted",
    "MemoryWritten",
    "MessageRow",
    "ModRows",
    "PartStored",
    "ParticipantSeen",
    "Record",
    "RequestSaved",
    "StepRecorded",
    "StopLifted",
    "TakeoverEnded",
    "ThreadCreated",
    "TokenAdded",
    "TokenRevoked",
    "TurnBegun",
    "TurnEnded",
    "TurnLeft",
    "TurnSent",
    "WakesSettled",
    "WakesTaken",
]


class MessageRow(NamedTuple):
    """One log entry. A tuple, as thousands a second are built and bound to SQL as they are."""

    seq: int
    thread_no: int
    tseq: int
    scope: int | None
    """`thread_no` of the root thread whose members receive it; None for a direct message, which is
    only addressed by name."""
    sender: str
    cid: str | None
    digest: int | None
    """A checksum of the call, to distinguish a repetition from a conflict."""
    recipient: str | None
    """The first participant addressed by name (direct, mentioned or woken), mostly the only one;
    `reason` and `reply` are as in `Delivery`. None if there is none."""
    reason: str | None
    reply: str | None
    body: bytes
    """The message as JSON, exactly as it travels."""


class Delivery(NamedTuple):
    """A further participant that a message addresses by name."""

    participant: str
    seq: int
    reason: str
    """The wake decision's reason code."""
    reply: str | None
    """`required` or `optional` if it wakes, otherwise None. The turn it starts is named
    `<participant>-m<seq>`."""


class ParticipantSeen(NamedTuple):
    """A participant exists (inserted or updated). `card` is JSON."""

    id: str
    kind: str
    card: str


class ThreadCreated(NamedTuple):
    no: int
    id: str


class MemberLeft(NamedTuple):
    """Messages with seq > `until` no longer reach the participant."""

    participant: str
    scope: int
    until: int


class MemoryWritten(NamedTuple):
    """A memory of the participant: `value` (JSON) under `key`, replacing any earlier value."""

    participant: str
    key: str
    value: str


class MemoryDeleted(NamedTuple):
    """The participant's memory under `key` is deleted."""

    participant: str
    key: str


class CursorMoved(NamedTuple):
    """The participant has everything up to `seq`. Never moves backwards."""

    participant: str
    seq: int


class WakesSettled(NamedTuple):
    """Wakes of `participant` up to `upto` need no turn, as it acknowledges without recording
    any."""

    participant: str
    upto: int


class TurnBegun(NamedTuple):
    """A turn began, or began again: its steps stay, and another process increases `attempts`.

    The wakes at `seqs` belong to it from now on.
    """

    id: str
    agent: str
    started_at: float
    start: str
    """`TurnStart` as JSON."""
    seqs: tuple[int, ...]
    lives: TurnProcesses = NO_LIVES
    system_prompt: bytes = b""
    """The digests of its parts (`PartStored`), `DIGEST` bytes each; empty if there are none."""
    prompt: bytes = b""


DIGEST = 16
"""Bytes of the digest of a prompt part."""


class PartStored(NamedTuple):
    """A part of an agent's prompts; storing it again changes nothing."""

    agent: str
    digest: bytes
    text: str


class TurnLeft(NamedTuple):
    """The process `life` stopped working on the turn without a crash."""

    id: str
    life: str


class WakesTaken(NamedTuple):
    """The wakes of `agent` at `seqs` belong to a turn that is already running."""

    turn: str
    agent: str
    seqs: tuple[int, ...]


class StepRecorded(NamedTuple):
    """A step of a turn; recording the same `n` again replaces it."""

    turn: str
    n: int
    step: str
    """`Step` as JSON."""


class TurnSent(NamedTuple):
    turn: str
    seq: int


class TurnEnded(NamedTuple):
    """The turn ended, and its wakes are settled. A second end changes nothing."""

    id: str
    ended_at: float
    end: str
    """`TurnEnd` as JSON."""


class CallSettled(NamedTuple):
    """The answer to a write without a message, stored so that its `cid` can be repeated."""

    sender: str
    cid: str
    digest: int
    value: str
    """JSON."""


class TokenAdded(NamedTuple):
    """A token's SHA-256 (hex), which proves `participant`."""

    sha256: str
    participant: str


class TokenRevoked(NamedTuple):
    """All tokens of the participant stop working."""

    participant: str


class StopLifted(NamedTuple):
    scope: str
    target: str


class TakeoverEnded(NamedTuple):
    agent: str


class ApprovalSaved(NamedTuple):
    """The current state of an approval; replaces the earlier one."""

    id: str
    agent: str
    turn: str
    state: str
    """An `ApprovalState`."""
    expires_at: float
    body: str
    """`Approval` as JSON."""


class RequestSaved(NamedTuple):
    """The current state of a request; replaces the earlier one."""

    seq: int
    """Position of the task's message."""
    requester: str
    worker: str
    state: str
    """A `RequestState`."""
    deadline: float
    body: str
    """`Request` as JSON."""


class AccountChanged(NamedTuple):
    """Changes to an interaction's account: differences, and new names."""

    interaction: int
    """Position of its opening message."""
    wakes: int = 0
    turns: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    usd: float = 0.0
    agents: tuple[str, ...] = ()
    """Agents woken for the first time."""
    reached: tuple[str, ...] = ()
    """Limits reached for the first time (`LimitName`)."""


@dataclass(slots=True)
class ModRows:
    """A mod's writes to its own tables: all or nothing, if they conflict.

    The rest of the batch is written in either case.
    """

    mod: str
    statements: Sequence[Statement]
    settled: CallSettled | None = None
    """Written only if the rows are."""
    refused: Exception | None = None
    """Why the rows were not written; set once the batch is."""
    asked: bool = True
    """Whether a caller waits for it and gets the error if it is refused."""

    def conflict(self) -> OperationError:
        """The error when another write was first, or the rows violate a constraint."""
        return OperationError(
            ErrorCode.CONFLICT,
            f"{self.mod}: this has changed meanwhile ({self.refused}); read it again and retry",
            details={"mod": self.mod},
        )


Record = (
    ParticipantSeen
    | ThreadCreated
    | StoredChannel
    | StoredMember
    | MemberLeft
    | StoredMark
    | MemoryWritten
    | MemoryDeleted
    | CursorMoved
    | WakesSettled
    | WakesTaken
    | PartStored
    | TurnBegun
    | StepRecorded
    | TurnSent
    | TurnEnded
    | TurnLeft
    | CallSettled
    | TokenAdded
    | TokenRevoked
    | StoredStop
    | StopLifted
    | StoredTakeover
    | TakeoverEnded
    | ApprovalSaved
    | RequestSaved
    | AccountChanged
    | StoredSpending
    | ModRows
)


@dataclass(slots=True)
class Batch:
    """The content of one transaction: records in order, then messages, then deliveries."""

    records: list[Record] = field(default_factory=list)
    messages: list[MessageRow] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)
