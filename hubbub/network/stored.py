"""Rows that a store returns, including those that are written in the same form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hubbub.network.running_turns import NO_LIVES, TurnProcesses
from hubbub.protocol.messages import ReplyNeed

__all__ = [
    "NO_PROMPTS",
    "OpenWake",
    "PendingRow",
    "Settled",
    "SpentInTurns",
    "StoreState",
    "StoredAccount",
    "StoredChannel",
    "StoredEvent",
    "StoredInteraction",
    "StoredKey",
    "StoredMark",
    "StoredMember",
    "StoredMemory",
    "StoredMentions",
    "StoredParticipant",
    "StoredPrompts",
    "StoredRun",
    "StoredSpending",
    "StoredStop",
    "StoredTakeover",
    "StoredThread",
    "StoredTurn",
    "StoredWake",
]


class StoredParticipant(NamedTuple):
    id: str
    kind: str
    card: str
    cursor: int


class StoredThread(NamedTuple):
    no: int
    id: str
    tseq: int
    """Position of its last message; 0 if it has none."""
    last_seq: int


class StoredChannel(NamedTuple):
    """Also written, when a channel is created or gets another description."""

    name: str
    description: str


class StoredMember(NamedTuple):
    """A current membership: messages with `scope` and seq > `since` reach the participant. Also
    written, when it begins."""

    participant: str
    scope: int
    since: int


class StoredMark(NamedTuple):
    """How far a participant has read a thread. Writing it replaces the earlier mark."""

    participant: str
    thread_no: int
    tseq: int


class StoredKey(NamedTuple):
    """A key of a participant's memory."""

    participant: str
    key: str


class StoredRun(NamedTuple):
    """A run of a hub, started when the log ended at `since`."""

    id: str
    since: int


class StoredStop(NamedTuple):
    """A stop of an agent, a thread or everything by a person, or of a thread by the breaker.
    Writing it replaces an earlier one of the same scope and target."""

    scope: str
    """`agent`, `thread`, `all` or `breaker`."""
    target: str
    """Agent id or canonical thread id; empty for `all`."""
    by: str
    reason: str
    at: float
    turns: int = 0
    """For the breaker: turns that began within its window."""


class StoredTakeover(NamedTuple):
    """A person speaks for the agent until `until` (seconds since the epoch)."""

    agent: str
    by: str
    until: float


class StoredAccount(NamedTuple):
    """An interaction's account, as sums of all changes."""

    wakes: int
    turns: int
    tokens_in: int
    tokens_out: int
    usd: float
    agents: tuple[str, ...]
    reached: tuple[str, ...]


class SpentInTurns(NamedTuple):
    """The spending of turns with one model, in interactions opened by one participant."""

    model: str
    person: str
    turns: int
    tokens_in: int
    tokens_out: int
    usd: float


class StoredSpending(NamedTuple):
    """The spending of an agent in a thread on one day; as a record, the amount to add."""

    day: str
    """YYYY-MM-DD, UTC."""
    agent: str
    thread_no: int
    wakes: int = 0
    turns: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    usd: float = 0.0


@dataclass(frozen=True)
class StoreState:
    """The state that the hub keeps in memory, read once at start."""

    epoch: str
    """A ULID created with the database, which identifies the log."""
    head: int
    participants: Sequence[StoredParticipant]
    threads: Sequence[StoredThread]
    channels: Sequence[StoredChannel]
    members: Sequence[StoredMember]
    marks: Sequence[StoredMark]
    keys: Sequence[StoredKey]
    stops: Sequence[StoredStop] = ()
    takeovers: Sequence[StoredTakeover] = ()
    approvals: Sequence[bytes] = ()
    """Approvals that are pending, or decided but unused while their turn has not ended (`Approval`
    as JSON), oldest first."""
    requests: Sequence[bytes] = ()
    """Open requests (`Request` as JSON), oldest first."""
    runs: Sequence[StoredRun] = ()
    """All runs of hubs on this log, oldest first; the last is the current one."""
    latest_day: str = ""
    """The latest day with spending (YYYY-MM-DD); empty if there is none."""


class StoredEvent(NamedTuple):
    """A message as one participant receives it. `reply` and `turn` are None if it does not wake."""

    seq: int
    tseq: int
    sender: str
    body: bytes
    reason: str | None
    reply: str | None
    turn: str | None


class PendingRow(NamedTuple):
    """A wake that is not settled."""

    seq: int
    body: bytes
    reason: str
    reply: str
    turn: str
    started: str | None
    """The turn that began with it."""


class OpenWake(NamedTuple):
    """A wake that is not settled, without its message."""

    seq: int
    started: str | None
    """The turn that began with it."""


class StoredWake(NamedTuple):
    reason: str
    reply: ReplyNeed | None
    turn: str | None
    state: str | None
    """`pending`, `running` or `ended`; None if it does not wake."""
    taken: str | None = None
    """The turn that took it, which differs from `turn` if several wakes became one turn."""


class StoredMentions(NamedTuple):
    bodies: Sequence[bytes]
    """Newest first."""
    upto: int
    """Messages before this seq were not searched; 1 if all were."""


class StoredInteraction(NamedTuple):
    rows: Sequence[tuple[int, bytes]]
    """`thread_no` and body of each message of the interaction, oldest first."""
    upto: int
    """Messages after this seq were not searched."""


class StoredMemory(NamedTuple):
    """A participant's memory under a key."""

    key: str
    size: int
    """Bytes of the value."""
    value: bytes | None
    """As JSON; None if it is longer than requested."""


class Settled(NamedTuple):
    """The outcome of an earlier call with a cid: the message at `seq`, or the answer `value`."""

    digest: int
    seq: int | None
    value: bytes | None


class StoredPrompts(NamedTuple):
    """The prompts of a turn; None if it has none."""

    system: str | None
    user: str | None


NO_PROMPTS = StoredPrompts(None, None)


@dataclass(frozen=True)
class StoredTurn:
    id: str
    agent: str
    started_at: float
    attempts: int
    start: bytes
    steps: Sequence[bytes]
    """As JSON, in order of n."""
    sent: Sequence[int]
    ended_at: float | None
    end: bytes | None
    lives: TurnProcesses = NO_LIVES
