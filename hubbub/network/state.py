"""The network's state in memory: participants, channels, threads, memberships."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Set
from dataclasses import dataclass
from functools import lru_cache

from hubbub.clock import SteadyClock
from hubbub.errors import OperationError
from hubbub.network.marks import MemoryKeys, ReadMarks
from hubbub.network.running_turns import RunningTurns
from hubbub.network.standing_stops import StandingStops, StandingTakeovers
from hubbub.network.stored import StoreState
from hubbub.network.targets import nearest
from hubbub.network.threads import Members, Thread, Threads
from hubbub.protocol import thread_ids
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Card, Channel, Kind, Participant

__all__ = ["ChannelState", "NetworkState", "ParticipantState", "Presence"]


@dataclass(slots=True)
class ParticipantState:
    """A participant of the network, connected or not."""

    id: str
    kind: Kind
    card: str
    """Its card as JSON."""
    cursor: int
    """It has everything up to this position."""


@dataclass(slots=True)
class ChannelState:
    name: str
    description: str
    scope: int
    """Number of the channel's thread."""


class Presence:
    """Counts the sockets of each participant."""

    def __init__(self) -> None:
        self.online: dict[str, int] = {}
        """The connected participants, with their number of sockets."""
        self._announced: set[str] = set()
        self._touched: set[str] = set()
        self.changed: Callable[[list[str], list[str]], object] = lambda came, went: None
        """Called with the result of `changes`."""

    def __contains__(self, participant: str) -> bool:
        return participant in self.online

    def __len__(self) -> int:
        return len(self.online)

    def join(self, participant: str) -> None:
        """Count a ready socket of the participant."""
        self.online[participant] = self.online.get(participant, 0) + 1
        self._touched.add(participant)

    def leave(self, participant: str) -> None:
        """Count down when one of its sockets ends."""
        left = self.online[participant] - 1
        if left:
            self.online[participant] = left
        else:
            del self.online[participant]
        self._touched.add(participant)

    def missed(self, participant: str) -> None:
        """Report a participant that was shown as connected as gone, unless it is connected."""
        if participant not in self.online:
            self._announced.add(participant)
            self._touched.add(participant)

    def changes(self) -> tuple[list[str], list[str]]:
        """Participants that came and went since the last call, without those that went and came
        back."""
        came = sorted(p for p in self._touched if p in self.online and p not in self._announced)
        went = sorted(p for p in self._touched if p not in self.online and p in self._announced)
        self._announced.update(came)
        self._announced.difference_update(went)
        self._touched.clear()
        self.changed(came, went)
        return came, went


class NetworkState:
    """Built from the store at start; changed only after the store commits the change."""

    def __init__(self, stored: StoreState, clock: SteadyClock):
        self.epoch = stored.epoch
        self.run = stored.runs[-1].id if stored.runs else ""
        ends = [run.since for run in stored.runs[1:]]
        self._ends = dict(zip((run.id for run in stored.runs), ends, strict=False))
        """Where the log ended at the end of each earlier run of the hub."""
        self._known = {
            row.id: ParticipantState(row.id, _kind(row.kind), row.card, row.cursor)
            for row in stored.participants
        }
        self.agents: set[str] = {p.id for p in self._known.values() if p.kind == "agent"}
        self.presence = Presence()
        self.threads = Threads()
        for thread in sorted(stored.threads, key=lambda row: (thread_ids.depth(row.id), row.no)):
            self.threads.restore(*thread)
        self.members = Members()
        for member in stored.members:
            self.members.join(member.participant, member.scope, member.since)
        self.marks = ReadMarks(stored.marks)
        self.memories = MemoryKeys(stored.keys)
        self.takeovers = StandingTakeovers(stored.takeovers, clock)
        self.stops = StandingStops(stored.stops, self.takeovers)
        self.turns = RunningTurns()
        self.revocations: Counter[str] = Counter()
        """How often each participant's tokens were revoked since the hub started."""
        self.down: dict[str, str] = {}
        """Agents that the launcher gave up on, and why."""
        self.making: set[str] = set()
        """Names of channels that are being stored."""
        self.broadcast = self.threads.ensure(thread_ids.BROADCAST)
        self.channels = {
            row.name: ChannelState(
                row.name, row.description, self.threads.ensure(thread_ids.channel(row.name)).no
            )
            for row in stored.channels
        }

    # Participants -------------------------------------------------------------------------

    def end_of(self, run: str | None, head: int) -> int:
        """The position up to which what a client saw in `run` belongs to this log; -1 for none. A
        client that names no run is trusted up to `head`."""
        return head if run is None or run == self.run else self._ends.get(run, -1)

    def knows(self, participant: str) -> bool:
        return participant in self._known

    def participants(self) -> Collection[str]:
        return self._known.keys()

    def all_participants(self) -> Iterator[ParticipantState]:
        yield from self._known.values()

    def get(self, participant: str) -> ParticipantState | None:
        return self._known.get(participant)

    def add(self, participant: ParticipantState) -> None:
        self._known[participant.id] = participant
        if participant.kind == "agent":
            self.agents.add(participant.id)
        else:
            self.agents.discard(participant.id)

    def forget(self, participant: str) -> None:
        """Remove a participant that could not be stored."""
        self._known.pop(participant, None)
        self.agents.discard(participant)
        self.marks.forget(participant)
        for scope in list(self.members.scopes(participant)):
            self.members.leave(participant, scope)

    def describe(self, participant: ParticipantState) -> Participant:
        described = _described(
            participant.id, participant.kind, participant.id in self.presence, participant.card
        )
        down = self.down.get(participant.id)
        return described if down is None else described.model_copy(update={"down": down})

    def described(self, participant: ParticipantState) -> bytes:
        """`describe` as JSON."""
        if participant.id in self.down:
            return self.describe(participant).model_dump_json().encode()
        present = "true" if participant.id in self.presence else "false"
        return (
            f'{{"id":"{participant.id}","kind":"{participant.kind}","present":{present},"card":{participant.card}}}'
        ).encode()

    # Channels -----------------------------------------------------------------------------

    def channel(self, name: str) -> ChannelState:
        """The channel named `name`, where `channel_general` and `#general` also mean general.

        Raises `OperationError`.
        """
        bare = name.removeprefix("#").removeprefix("channel_").removeprefix("channel.")
        channel = self.channels.get(name) or self.channels.get(bare)
        if channel is None and bare in self.making:
            text = f"the channel {bare!r} is being created; try again"
            raise OperationError(ErrorCode.UNKNOWN_CHANNEL, text, temporary=True)
        if channel is None:
            hint = nearest(bare, self.channels)
            raise OperationError(
                ErrorCode.UNKNOWN_CHANNEL, f"no channel is named {bare[:64]!r}{hint}"
            )
        return channel

    def describe_channel(self, channel: ChannelState, reader: str) -> Channel:
        members = self.members.of(channel.scope)
        return Channel(
            name=channel.name,
            description=channel.description,
            members=tuple(sorted(members)),
            joined=reader in members,
        )

    # Threads ------------------------------------------------------------------------------

    def may_read(self, thread: Thread, participant: str) -> bool:
        """Whether the participant reads the thread: one of its direct threads or scopes."""
        if thread.scope is None:
            return participant in thread.members
        return participant in self.members.of(thread.scope)

    def is_talk_of_agents(self, thread: Thread) -> bool:
        """Whether the thread is direct, or replies in one, and has no person in it."""
        return thread.scope is None and not any(map(self.is_person, thread.members))

    def is_person(self, participant: str) -> bool:
        """Whether the participant is a person; an unknown one counts as such."""
        state = self._known.get(participant)
        return state is None or state.kind == "human"

    def set_by_person(self, timer_of: str | None) -> bool:
        """Whether the timer's owner is a person or the operator; `timer_of` is None without one."""
        return timer_of is not None and self.is_person(timer_of)

    def readers(self, thread: Thread, without: str) -> Set[str]:
        """The recipients of messages in the thread, without the speaker."""
        audience = thread.members if thread.scope is None else self.members.of(thread.scope)
        return audience - {without}

    def thread_for(self, thread_id: str, participant: str, sent_by: str | None = None) -> Thread:
        """The thread, if it exists and the participant reads it; `sent_by` is the person who speaks
        for it. Raises `OperationError`.

        Both failures have the same text, so as not to reveal that a thread exists.
        """
        thread = self.threads.get(thread_id)
        if thread is None or not self.may_read(thread, participant):
            shown = thread_ids.relative(thread_id, participant)
            who, hint = (
                ("you are", "; see list_threads") if sent_by is None else (f"{participant} is", "")
            )
            raise OperationError(
                ErrorCode.UNKNOWN_THREAD, f"{who} not in a thread {shown[:200]!r}{hint}"
            )
        return thread


@lru_cache(maxsize=8192)  # parsing cards dominates the time to list a thousand participants
def _described(id: str, kind: Kind, present: bool, card: str) -> Participant:
    return Participant(id=id, kind=kind, present=present, card=Card.model_validate_json(card))


def _kind(text: str) -> Kind:
    match text:
        case "agent" | "human" | "service":
            return text
    raise ValueError(f"the store has a participant of unknown kind {text!r}")
