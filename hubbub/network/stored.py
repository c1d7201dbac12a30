"""What a store gives back, and what of that is written in the same form."""

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
    """Also written, when a channel is made."""

    name: str
    description: str


class StoredMember(NamedTuple):
    """A membership that has not ended: messages with `scope` reach the participant from `since` on,
    those with seq > `since`. Also written, when it begins."""

    participant: str
    scope: int
    since: int


class StoredMark(NamedTuple):
    """How far a participant has read a thread. Written in place of the mark before."""

    participant: str
    thread_no: int
    tseq: int


class StoredKey(NamedTuple):
    """A participant remembers something under the key."""

    participant: str
    key: str


class StoredRun(NamedTuple):
    """A hub was started on the log, whose end was at `since`."""

    id: str
    since: int


class StoredStop(NamedTuple):
    """A person has stopped an agent, a thread or everything, or the breaker a thread. Written in
    place of an earlier one of the same scope and target."""

    scope: str
    """`agent`, `thread`, `all` or `breaker`."""
    target: str
    """Agent id or canonical thread id; empty for `all`."""
    by: str
    reason: str
    at: float
    turns: int = 0
    """Of the breaker: turns that had begun within its time."""


class StoredTakeover(NamedTuple):
    """A person speaks for the agent until then (seconds since the epoch)."""

    agent: str
    by: str
    until: float


class StoredAccount(NamedTuple):
    """An interaction's account, as the sums of what was added to it."""

    wakes: int
    turns: int
    tokens_in: int
    tokens_out: int
    usd: float
    agents: tuple[str, ...]
    reached: tuple[str, ...]


class SpentInTurns(NamedTuple):
    """What turns spent that one model answered and one participant's message set in motion."""

    model: str
    person: str
    turns: int
    tokens_in: int
    tokens_out: int
    usd: float


class StoredSpending(NamedTuple):
    """A day's account of an agent in a thread; written: what is added to it."""

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
    """What the hub keeps in memory, read once at start."""

    epoch: str
    """A ULID made with the database: the log's incarnation."""
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
    """Those that are pending, or decided and not used while their turn has not ended (`Approval` as
    JSON), oldest first."""
    requests: Sequence[bytes] = ()
    """Those that are open (`Request` as JSON), oldest first."""
    runs: Sequence[StoredRun] = ()
    """When hubs were started on this log, oldest first; the last is this one."""
    latest_day: str = ""
    """The latest day of the accounts (YYYY-MM-DD); empty: there is none."""


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
    """The turn that had begun with it."""


class OpenWake(NamedTuple):
    """A wake that is not settled, by its position alone."""

    seq: int
    started: str | None
    """The turn that had begun with it."""


class StoredWake(NamedTuple):
    reason: str
    reply: ReplyNeed | None
    turn: str | None
    state: str | None
    """`pending`, `running` or `ended`; None if it does not wake."""
    taken: str | None = None
    """The turn that has taken it; another than `turn` when several wakes became one turn."""


class StoredMentions(NamedTuple):
    bodies: Sequence[bytes]
    """Newest first."""
    upto: int
    """What lies before this seq has not been looked at; 1 if that is nothing."""


class StoredInteraction(NamedTuple):
    found: Sequence[tuple[int, bytes]]
    """`thread_no` and body of each message of the interaction, oldest first."""
    upto: int
    """What comes after this seq has not been looked at."""


class StoredMemory(NamedTuple):
    """What a participant remembers under a key."""

    key: str
    size: int
    """Bytes of the value."""
    value: bytes | None
    """As JSON; None where it is longer than was asked for."""


class Settled(NamedTuple):
    """What an earlier call with a cid did: wrote the message at `seq`, or answered `value`."""

    digest: int
    seq: int | None
    value: bytes | None


class StoredPrompts(NamedTuple):
    """Of a turn; None: it has none."""

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
