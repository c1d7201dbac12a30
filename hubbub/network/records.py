"""What the hub hands to a store: finished records, in batches.

Records are tuples of what SQL is bound to. Those that a store also gives back stand in `stored`.
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
    """One log entry. Tuples, because thousands a second are made and bound to SQL as they are."""

    seq: int
    thread_no: int
    tseq: int
    scope: int | None
    """`thread_no` of the root thread whose members receive it; None for a direct message, which
    reaches participants by name only."""
    sender: str
    cid: str | None
    digest: int | None
    """A checksum of what the client asked, to tell a repetition from a conflict."""
    recipient: str | None
    """Whom it reaches by name (direct, mentioned or woken), in nearly all messages the only one;
    `reason` and `reply` are then those of a `Delivery`. None: nobody."""
    reason: str | None
    reply: str | None
    body: bytes
    """The message as JSON, exactly as it travels."""


class Delivery(NamedTuple):
    """A further participant whom a message reaches by name."""

    participant: str
    seq: int
    reason: str
    """The wake decision's reason code."""
    reply: str | None
    """`required` or `optional` if it wakes; None if it does not. The turn it starts is called
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
    """The participant remembers `value` (JSON) under `key`, in place of what it held."""

    participant: str
    key: str
    value: str


class MemoryDeleted(NamedTuple):
    """The participant remembers nothing under `key` any more."""

    participant: str
    key: str


class CursorMoved(NamedTuple):
    """The participant has everything up to `seq`. Never moves backwards."""

    participant: str
    seq: int


class WakesSettled(NamedTuple):
    """Wakes of `participant` up to `upto` need no turn: it acknowledges without recording any."""

    participant: str
    upto: int


class TurnBegun(NamedTuple):
    """A turn began, or began again: its steps stay, and `attempts` grows if another process begins.

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
    """The digests of its parts (`PartStored`), `DIGEST` bytes each; empty: it has none."""
    prompt: bytes = b""


DIGEST = 16
"""Bytes that name a part of a prompt."""


class PartStored(NamedTuple):
    """A part of an agent's prompts; the same once more changes nothing."""

    agent: str
    digest: bytes
    text: str


class TurnLeft(NamedTuple):
    """The process `life` works on the turn no more, and has not died in it."""

    id: str
    life: str


class WakesTaken(NamedTuple):
    """The wakes of `agent` at `seqs` belong to a turn that has begun before."""

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
    """The turn is over, and its wakes are settled. A second end changes nothing."""

    id: str
    ended_at: float
    end: str
    """`TurnEnd` as JSON."""


class CallSettled(NamedTuple):
    """The answer to a write that is no message, kept so that its `cid` can be repeated."""

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
    """An approval as it stands now; replaces what stood under its id."""

    id: str
    agent: str
    turn: str
    state: str
    """An `ApprovalState`."""
    expires_at: float
    body: str
    """`Approval` as JSON, without `may_decide`."""


class RequestSaved(NamedTuple):
    """A request as it stands now; replaces what stood under its id."""

    seq: int
    """Of the message that asked."""
    requester: str
    worker: str
    state: str
    """A `RequestState`."""
    deadline: float
    body: str
    """`Request` as JSON."""


class AccountChanged(NamedTuple):
    """What was added to an interaction's account: differences, and names that are new in it."""

    interaction: int
    """Position of the message that opened it."""
    wakes: int = 0
    turns: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    usd: float = 0.0
    agents: tuple[str, ...] = ()
    """Agents that it woke for the first time."""
    reached: tuple[str, ...] = ()
    """Limits that it ran into for the first time (`LimitName`)."""


@dataclass(slots=True)
class ModRows:
    """What a mod writes in its own tables: all of it, or nothing where it contradicts them.

    The rest of the batch is written either way.
    """

    mod: str
    statements: Sequence[Statement]
    settled: CallSettled | None = None
    """Written with it, and only if it is."""
    refused: Exception | None = None
    """Why it was not written; known when the batch is."""
    asked: bool = True
    """Whether somebody waits for it, and is told when it is refused."""

    def conflict(self) -> OperationError:
        """Somebody else was first, or the rows contradict what is there."""
        return OperationError(
            ErrorCode.CONFLICT,
            f"{self.mod}: this has changed meanwhile ({self.refused}); read it again, and decide "
            "anew",
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
    """What one transaction writes: records in their order, then messages, then deliveries."""

    records: list[Record] = field(default_factory=list)
    messages: list[MessageRow] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)
