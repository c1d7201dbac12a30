"""A model of the `Store` port in lists and dicts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import cast

from hubbub.network.ports import DuplicateCids
from hubbub.network.records import (
    Batch,
    CallSettled,
    CursorMoved,
    Delivery,
    MemberLeft,
    MemoryDeleted,
    MemoryWritten,
    MessageRow,
    ParticipantSeen,
    Record,
    StepRecorded,
    ThreadCreated,
    TokenAdded,
    TokenRevoked,
    TurnBegun,
    TurnEnded,
    TurnSent,
    WakesSettled,
)
from hubbub.network.stored import (
    PendingRow,
    Settled,
    StoredEvent,
    StoredKey,
    StoredMark,
    StoredMember,
    StoredMemory,
    StoredWake,
)
from hubbub.protocol.messages import ReplyNeed

__all__ = ["ModelTurn", "StoreModel"]


@dataclass
class Membership:
    participant: str
    scope: int
    since: int
    until: int | None = None

    def reaches(self, seq: int) -> bool:
        return self.since < seq and (self.until is None or seq <= self.until)


@dataclass
class ModelTurn:
    agent: str
    attempts: int = 0
    steps: dict[int, str] = field(default_factory=dict)
    sent: set[int] = field(default_factory=set)
    end: str | None = None


class StoreModel:
    """The expected content of a store after its batches."""

    def __init__(self) -> None:
        self.messages: list[MessageRow] = []
        self.deliveries: dict[tuple[str, int], Delivery] = {}
        self.memberships: list[Membership] = []
        self.calls: dict[tuple[str, str], CallSettled] = {}
        self.cursors: dict[str, int] = {}
        self.marks: dict[tuple[str, int], int] = {}
        self.memory: dict[tuple[str, str], str] = {}
        self.floors: dict[str, int] = {}
        self.turns: dict[str, ModelTurn] = {}
        self.taken: dict[tuple[str, int], str] = {}
        self.tokens: dict[str, str] = {}

    @property
    def head(self) -> int:
        return len(self.messages)

    def append(self, batch: Batch) -> None:
        calls = [record for record in batch.records if isinstance(record, CallSettled)]
        cids = {(call.sender, call.cid) for call in calls}
        cids |= {(row.sender, row.cid) for row in batch.messages if row.cid}
        if duplicates := {pair for pair in cids if self.settled(*pair)}:
            raise DuplicateCids(frozenset(duplicates))
        for record in batch.records:
            self._apply(record)
        self.messages += batch.messages
        first = [
            Delivery(row.recipient, row.seq, row.reason or "", row.reply)
            for row in batch.messages
            if row.recipient is not None
        ]
        named = [*first, *batch.deliveries]
        self.deliveries |= {(row.participant, row.seq): row for row in named}

    def _apply(self, record: Record) -> None:
        match record:
            case StoredMember(participant, scope, since):
                if not self._current(participant, scope):
                    self.memberships.append(Membership(participant, scope, since))
            case MemberLeft(participant, scope, until):
                for membership in self._current(participant, scope):
                    membership.until = until
            case CursorMoved(participant, seq):
                self.cursors[participant] = max(seq, self.cursors.get(participant, 0))
            case StoredMark(participant, thread_no, tseq):
                self.marks[participant, thread_no] = tseq
            case MemoryWritten(participant, key, value):
                self.memory[participant, key] = value
            case MemoryDeleted(participant, key):
                self.memory.pop((participant, key), None)
            case WakesSettled(participant, upto):
                self.floors[participant] = max(upto, self.floors.get(participant, 0))
            case CallSettled(sender, cid):
                self.calls[sender, cid] = record
            case TokenAdded(sha256, participant):
                self.tokens[sha256] = participant
            case TokenRevoked(participant):
                self.tokens = {k: v for k, v in self.tokens.items() if v != participant}
            case ParticipantSeen(participant):
                self.cursors.setdefault(participant, 0)
            case ThreadCreated():
                pass  # tracked by the machine
            case _:
                self._apply_turn(record)

    def _apply_turn(self, record: Record) -> None:
        match record:
            case TurnBegun(turn, agent, _, _, seqs):
                self.turns.setdefault(turn, ModelTurn(agent)).attempts += 1
                self.taken |= {(agent, seq): turn for seq in seqs}
            case StepRecorded(turn, n, step):
                self.turns[turn].steps[n] = step
            case TurnSent(turn, seq):
                self.turns[turn].sent.add(seq)
            case TurnEnded(turn, _, end):
                self.turns[turn].end = self.turns[turn].end or end
            case _:
                raise AssertionError(record)

    def _current(self, participant: str, scope: int) -> list[Membership]:
        return [
            each
            for each in self.memberships
            if (each.participant, each.scope, each.until) == (participant, scope, None)
        ]

    def members(self) -> set[StoredMember]:
        return {
            StoredMember(each.participant, each.scope, each.since)
            for each in self.memberships
            if each.until is None
        }

    def read_marks(self) -> set[StoredMark]:
        return {StoredMark(*key, tseq) for key, tseq in self.marks.items()}

    def keys(self) -> list[StoredKey]:
        return [StoredKey(*pair) for pair in sorted(self.memory)]

    def memories(self, participant: str, short: int) -> list[StoredMemory]:
        memories = []
        for (name, key), value in sorted(self.memory.items()):
            if name == participant:
                size = len(value.encode())
                shown = value.encode() if size <= short else None
                memories.append(StoredMemory(key, size, shown))
        return memories

    def members_at(self, scope: int, seq: int) -> set[str]:
        return {e.participant for e in self.memberships if e.scope == scope and e.reaches(seq)}

    def was_member(self, participant: str, scope: int, seq: int) -> bool:
        return any(
            (each.participant, each.scope) == (participant, scope) and each.reaches(seq)
            for each in self.memberships
        )

    def events(
        self, participant: str, after: int, upto: int, limit: int, own: bool
    ) -> list[StoredEvent]:
        events = []
        for row in self.messages[after:upto]:
            named = self.deliveries.get((participant, row.seq))
            scoped = row.scope is not None and self.was_member(participant, row.scope, row.seq)
            if (named or scoped) and (own or row.sender != participant):
                if named and self._is_over(named):
                    named = named._replace(reply=None)  # it wakes nobody any more
                decision = (*named[2:], turn_of(named)) if named else (None, None, None)
                events.append(StoredEvent(row.seq, row.tseq, row.sender, row.body, *decision))
        return events[:limit]

    def _is_over(self, row: Delivery) -> bool:
        """Whether the turn with this wake has ended."""
        taken = self.taken.get((row.participant, row.seq))
        return taken is not None and self.turns[taken].end is not None

    def thread(self, no: int, upto: int) -> list[bytes]:
        """Bodies of a thread's messages with seq <= `upto`, oldest first."""
        return [row.body for row in self.messages[:upto] if row.thread_no == no]

    def settled(self, sender: str, cid: str) -> Settled | None:
        for row in self.messages:
            if (row.sender, row.cid) == (sender, cid):
                return Settled(row.digest or 0, row.seq, None)
        call = self.calls.get((sender, cid))
        return Settled(call.digest, None, call.value.encode()) if call else None

    def wake(self, participant: str, seq: int) -> StoredWake | None:
        row = self.deliveries.get((participant, seq))
        if row is None:
            return None
        taken = self.taken.get((participant, seq))
        reply = cast("ReplyNeed | None", row.reply)
        return StoredWake(
            row.reason, reply, turn_of(row), self._state(row) if reply else None, taken
        )

    def wakes(self, seqs: Iterable[int]) -> dict[tuple[int, str], StoredWake]:
        wakes = {
            (seq, name): self.wake(name, seq) for name, seq in self.deliveries if seq in set(seqs)
        }
        return {key: wake for key, wake in sorted(wakes.items()) if wake}

    def named(self, participant: str, text: str, before: int) -> list[int]:
        """Positions of messages addressed to a participant that contain the text, newest first."""
        return [
            row.seq
            for row in reversed(self.messages[: before - 1])
            if (participant, row.seq) in self.deliveries and text.encode() in row.body
        ]

    def _state(self, row: Delivery) -> str:
        turn = self.taken.get((row.participant, row.seq))
        if turn is not None:
            return "ended" if self.turns[turn].end else "running"
        return "ended" if row.seq <= self.floors.get(row.participant, 0) else "pending"

    def pending(self, agent: str, upto: int) -> list[PendingRow]:
        rows = []
        for seq in range(1, min(upto, self.head) + 1):
            row = self.deliveries.get((agent, seq))
            if row and row.reply and self._state(row) != "ended":
                started = self.taken.get((agent, seq))
                body, turn = self.messages[seq - 1].body, f"{agent}-m{seq}"
                rows.append(PendingRow(seq, body, row.reason, row.reply, turn, started))
        return rows

    def latest_turns(self, agent: str | None) -> Sequence[str]:
        return [id_ for id_, turn in reversed(self.turns.items()) if agent in (None, turn.agent)]

    def hashes(self, participant: str) -> set[str]:
        return {sha256 for sha256, owner in self.tokens.items() if owner == participant}

    def woken(self, agent: str) -> Iterable[int]:
        """Positions of the wakes of an agent."""
        return [seq for (name, seq), row in self.deliveries.items() if name == agent and row.reply]


def turn_of(row: Delivery) -> str | None:
    """The turn that a delivery starts."""
    return f"{row.participant}-m{row.seq}" if row.reply else None
