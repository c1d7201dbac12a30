"""What the hub needs of the outside: a `Store`. (Time is `hubbub.clock.Clock`, the way between
nodes `hubbub.network.backplane`.)

The hub decides everything (positions, recipients, wakes) and hands over finished records; a store
keeps them, in one transaction per batch, and reads them back. It decides nothing. Every store runs
the contract suite in `hubbub.testing.store_contract`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

__all__ = [
    "Batch",
    "CallSettled",
    "ChannelCreated",
    "CursorMoved",
    "Delivery",
    "DuplicateCids",
    "MemberJoined",
    "MemberLeft",
    "MessageRow",
    "ParticipantSeen",
    "PendingRow",
    "ReadMarked",
    "Record",
    "Settled",
    "StepRecorded",
    "Store",
    "StoreState",
    "StoredChannel",
    "StoredEvent",
    "StoredInteraction",
    "StoredMark",
    "StoredMember",
    "StoredMentions",
    "StoredParticipant",
    "StoredThread",
    "StoredTurn",
    "StoredWake",
    "ThreadCreated",
    "TokenAdded",
    "TokenRevoked",
    "TurnBegun",
    "TurnEnded",
    "TurnSent",
    "WakesSettled",
    "WakesTaken",
]


# What is written -----------------------------------------------------------------------------


class MessageRow(NamedTuple):
    """One log entry. Tuples, because thousands a second are made and bound to SQL as they are."""

    seq: int
    thread_no: int
    tseq: int
    scope: int | None
    """`thread_no` of the root thread whose members receive it; None for a direct message, which is
    received by the participants of its `Delivery` rows only."""
    sender: str
    cid: str | None
    digest: int | None
    """A checksum of what the client asked, to tell a repetition from a conflict."""
    body: str
    """The message as JSON, exactly as it travels."""


class Delivery(NamedTuple):
    """A participant whom a message reaches by name (direct, mentioned or woken)."""

    participant: str
    seq: int
    reason: str
    """The wake decision's reason code."""
    reply: str | None
    """`required` or `optional` if it wakes; None if it does not."""
    turn: str | None
    """The turn it starts; None if it does not wake."""


@dataclass(slots=True)
class ParticipantSeen:
    """A participant exists (inserted or updated). `card` is JSON."""

    id: str
    kind: str
    card: str


@dataclass(slots=True)
class ThreadCreated:
    no: int
    id: str


@dataclass(slots=True)
class ChannelCreated:
    name: str
    description: str


@dataclass(slots=True)
class MemberJoined:
    """From now on messages with `scope` reach the participant: those with seq > `since`."""

    participant: str
    scope: int
    since: int


@dataclass(slots=True)
class MemberLeft:
    """Messages with seq > `until` no longer reach the participant."""

    participant: str
    scope: int
    until: int


@dataclass(slots=True)
class ReadMarked:
    """The participant has read the thread up to `tseq`; replaces what was marked before."""

    participant: str
    thread_no: int
    tseq: int


@dataclass(slots=True)
class CursorMoved:
    """The participant has everything up to `seq`. Never moves backwards."""

    participant: str
    seq: int


@dataclass(slots=True)
class WakesSettled:
    """Wakes of `participant` up to `upto` need no turn: it acknowledges without recording any."""

    participant: str
    upto: int


@dataclass(slots=True)
class TurnBegun:
    """A turn began, or began again: then `attempts` grows and its steps stay.

    The wakes at `seqs` belong to it from now on.
    """

    id: str
    agent: str
    started_at: float
    start: str
    """`TurnStart` as JSON."""
    seqs: tuple[int, ...]


@dataclass(slots=True)
class WakesTaken:
    """The wakes of `agent` at `seqs` belong to a turn that has begun before."""

    turn: str
    agent: str
    seqs: tuple[int, ...]


@dataclass(slots=True)
class StepRecorded:
    """A step of a turn; recording the same `n` again replaces it."""

    turn: str
    n: int
    step: str
    """`Step` as JSON."""


@dataclass(slots=True)
class TurnSent:
    turn: str
    seq: int


@dataclass(slots=True)
class TurnEnded:
    """The turn is over, and its wakes are settled. A second end changes nothing."""

    id: str
    ended_at: float
    end: str
    """`TurnEnd` as JSON."""


@dataclass(slots=True)
class CallSettled:
    """The answer to a write that is no message, kept so that its `cid` can be repeated."""

    sender: str
    cid: str
    digest: int
    value: str
    """JSON."""


@dataclass(slots=True)
class TokenAdded:
    """A token's SHA-256 (hex), which proves `participant`."""

    sha256: str
    participant: str


@dataclass(slots=True)
class TokenRevoked:
    """All tokens of the participant stop working."""

    participant: str


Record = (
    ParticipantSeen
    | ThreadCreated
    | ChannelCreated
    | MemberJoined
    | MemberLeft
    | ReadMarked
    | CursorMoved
    | WakesSettled
    | TurnBegun
    | WakesTaken
    | StepRecorded
    | TurnSent
    | TurnEnded
    | CallSettled
    | TokenAdded
    | TokenRevoked
)


@dataclass(slots=True)
class Batch:
    """What one transaction writes: records in their order, then messages, then deliveries."""

    records: list[Record] = field(default_factory=list)
    messages: list[MessageRow] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)


class DuplicateCids(Exception):
    """A (sender, cid) of the batch is in the store already. Nothing of the batch was written.

    `found` has every such pair of the batch.
    """

    def __init__(self, found: frozenset[tuple[str, str]]):
        self.found = found
        super().__init__(f"{len(found)} duplicate cids")


# What is read --------------------------------------------------------------------------------


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
    name: str
    description: str


class StoredMember(NamedTuple):
    """A membership that has not ended."""

    participant: str
    scope: int
    since: int


class StoredMark(NamedTuple):
    """How far a participant has read a thread."""

    participant: str
    thread_no: int
    tseq: int


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


class StoredWake(NamedTuple):
    reason: str
    reply: str | None
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


class Settled(NamedTuple):
    """What an earlier call with a cid did: wrote the message at `seq`, or answered `value`."""

    digest: int
    seq: int | None
    value: bytes | None


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


class Store(Protocol):
    """A durable log with what belongs to it. One hub writes; reads may run beside the writes.

    Every method raises `StoreUnavailable` when the disk refuses; after that the store can be used
    again, and nothing of the failed batch is in it.
    """

    async def open(self) -> StoreState:
        """Create or migrate, then read what the hub keeps in memory.

        Raises `StoreVersionError` if the database is newer than this program or is not ours, and
        `UserError` if another hub has it open.
        """
        ...

    async def close(self) -> None: ...

    async def append(self, batch: Batch) -> None:
        """Write the batch in one transaction; durable when this returns.

        Deliveries belong to messages of the same batch. Raises `DuplicateCids` or
        `StoreUnavailable`, and `ValueError` for a batch that contradicts the log (a defect of the
        caller); then nothing of it is written.
        """
        ...

    async def events(
        self, participant: str, after: int, upto: int, limit: int, own: bool
    ) -> Sequence[StoredEvent]:
        """What reaches the participant in (after, upto], in log order, at most `limit` entries.

        That is: its deliveries, and the messages of the scopes it was a member of at that seq.
        Its own messages are left out unless `own`.
        """
        ...

    async def log(self, after: int, upto: int, limit: int) -> Sequence[StoredEvent]:
        """Every message in (after, upto], in order (wake columns None): what an observer sees."""
        ...

    async def tails(
        self, threads: Sequence[int], upto: int, limit: int
    ) -> Mapping[int, Sequence[bytes]]:
        """By thread number: the bodies of its last `limit` messages up to `upto`, oldest first.

        Fewer if they are large, as in `thread_page`.
        """
        ...

    async def thread_page(self, thread: int, before: int | None, limit: int) -> Sequence[bytes]:
        """Bodies of the last `limit` messages of a thread with tseq < `before`, oldest first.

        Fewer if they are large: a page is at least one message, and about 256 KiB at most.
        """
        ...

    async def message(self, seq: int) -> bytes | None:
        """The body of the message at `seq`."""
        ...

    async def was_member(self, participant: str, scope: int, seq: int) -> bool:
        """Whether a message with this scope and seq reached the participant as a member."""
        ...

    async def members_at(self, scope: int, seq: int) -> Collection[str]:
        """Whom a message with this scope and seq reached as members."""
        ...

    async def mentions(self, participant: str, before: int, limit: int) -> StoredMentions:
        """The last `limit` messages with seq < `before` that reach the participant by name and
        mention it.

        Looks at a bounded part of the log in one call, and gives about 256 KiB at most.
        """
        ...

    async def interaction(self, interaction: str, after: int, upto: int) -> StoredInteraction:
        """The messages in (after, upto] that belong to the interaction.

        Reads the log forward, a bounded part of it in one call, and gives about 256 KiB at most.
        """
        ...

    async def settled(self, sender: str, cid: str) -> Settled | None: ...

    async def pending(self, agent: str, upto: int) -> Sequence[PendingRow]:
        """Wakes of the agent with seq <= `upto` that are not settled, oldest first."""
        ...

    async def wake(self, participant: str, seq: int) -> StoredWake | None:
        """The delivery row of a participant and message."""
        ...

    async def wakes(self, seqs: Sequence[int]) -> Mapping[tuple[int, str], StoredWake]:
        """The delivery rows of these messages, by seq and participant, in that order."""
        ...

    async def turn(self, turn: str) -> StoredTurn | None: ...

    async def turns(self, agent: str | None, limit: int) -> Sequence[StoredTurn]:
        """The latest turns, newest first."""
        ...

    async def turns_called(self, ids: Sequence[str]) -> Sequence[StoredTurn]:
        """Those of these turns that have begun, oldest first."""
        ...

    async def token_hashes(self, participant: str) -> Sequence[str]:
        """SHA-256 (hex) of the participant's tokens, always as the store has them now."""
        ...

    async def token_counts(self) -> Mapping[str, int]:
        """How many tokens those have who have any, by name; as the store has them now."""
        ...
