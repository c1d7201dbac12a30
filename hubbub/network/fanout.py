"""The connected sessions, and the push of committed messages to them. Each event is encoded
once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from msgspec import Raw

from hubbub.network.log import Entry
from hubbub.network.metrics import HubMetrics
from hubbub.network.queues import Queues
from hubbub.network.session import Session
from hubbub.network.state import NetworkState
from hubbub.network.wakes import SUPPRESSIONS
from hubbub.protocol.codec import PlainSendResult, SharedEvent, encode_wake

__all__ = ["Fanout"]


class Fanout:
    """The ready sessions, by participant."""

    parked: Callable[[str], Collection[str]] = staticmethod(lambda agent: ())
    """Returns the turns of an agent that wait for a person, and so do not count as queued."""

    def __init__(self, state: NetworkState, queues: Queues, metrics: HubMetrics):
        self._state, self._queues, self._metrics = state, queues, metrics
        self._sessions: dict[str, list[Session]] = {}
        self._observers: list[Session] = []
        self._people: dict[Session, None] = {}

    def __len__(self) -> int:
        return sum(map(len, self._sessions.values())) + len(self._observers)

    def add(self, session: Session) -> None:
        if session.observe:
            self._observers.append(session)
        else:
            self._sessions.setdefault(session.participant, []).append(session)
        if session.caller is not None and session.caller.kind == "human":
            self._people[session] = None

    def discard(self, session: Session) -> bool:
        """Remove a session. False if it was not there."""
        self._people.pop(session, None)
        if session in self._observers:
            self._observers.remove(session)
            return True
        held = self._sessions.get(session.participant, [])
        if session not in held:
            return False
        held.remove(session)
        if not held:
            del self._sessions[session.participant]
        return True

    @property
    def people(self) -> bool:
        """Whether any person is connected."""
        return bool(self._people)

    def sessions_of_people(self) -> list[Session]:
        return list(self._people)

    def of(self, participant: str) -> Sequence[Session]:
        return self._sessions.get(participant, ())

    def all(self) -> list[Session]:
        return [s for held in self._sessions.values() for s in held] + self._observers

    def committed(self, entries: Sequence[Entry]) -> None:
        """Answer the senders of the entries, then offer the entries to all recipients."""
        for entry in entries:
            for participant, _, reply in entry.decisions if entry.wakes else ():
                if reply is not None:
                    self._queues.woken(participant, entry.seq)
            entry.waiter.sent(entry.ref, entry)
            for waiter, ref in entry.also:
                waiter.sent(ref, entry, duplicate=True)
        for entry in entries:
            self.push(entry)

    def send_result(self, entry: Entry) -> PlainSendResult:
        """The result for the sender of a committed entry."""
        draft, online = entry.draft, self._state.presence.online
        result = PlainSendResult(
            f"m{entry.seq}",
            entry.seq,
            draft.thread_id,
            entry.tseq,
            Raw(entry.body),
            unresolved=draft.unresolved,
            notes=draft.notes,
        )
        for p in {*draft.recipients, *draft.mentions} if draft.mentions else draft.recipients:
            (result.present if p in online else result.absent).append(p)
        for participant, reason, reply in entry.decisions:
            if reply is not None:
                parked = self.parked(participant)
                result.queued[participant] = self._queues.depth(participant, parked)
            elif reason in SUPPRESSIONS:
                result.not_woken[participant] = reason
        if draft.purpose is not None:
            result.amends = draft.amends
        return result

    def push(self, entry: Entry) -> None:
        """Offer a committed entry to every session of its recipients."""
        seq, draft, sessions = entry.seq, entry.draft, self._sessions
        event = SharedEvent(seq, entry.tseq, entry.body)
        sender = draft.sender_id
        wakes: dict[str, bytes] = {}
        for participant, reason, reply in entry.decisions if entry.wakes else ():
            if reply is not None:
                self._metrics.wakes[reason] += 1
                wakes[participant] = encode_wake(reason, reply, f"{participant}-m{seq}")
        audience: Iterable[str] = draft.recipients
        if entry.thread.scope is not None:
            audience = self._state.members.of(entry.thread.scope)
        for participant in audience:
            if participant != sender and participant in sessions:
                wake = wakes.get(participant, b"")
                for session in sessions[participant]:
                    session.offer(event, wake)
        # The sender's other sockets, such as a person's second tab.
        for session in sessions.get(sender, ()):
            if session is not entry.waiter:
                session.offer(event, b"")
        for session in self._observers:
            session.offer(event, b"")

    def send_ephemeral(self, participants: Iterable[str], frame: bytes, without: str = "") -> None:
        """Write an ephemeral frame to the connected participants among `participants`."""
        for participant in participants:
            if participant != without:
                for session in self._sessions.get(participant, ()):
                    session.send_ephemeral(frame)

    def send_ephemeral_to_readers(self, participants: Iterable[str], frame: bytes) -> None:
        """Write an ephemeral frame to the readers of a thread, observers included."""
        self.send_ephemeral(participants, frame)
        for session in self._observers:
            session.send_ephemeral(frame)

    def send_ephemeral_to_people(self, frame: bytes) -> None:
        """Write an ephemeral frame to all people's connections."""
        for session in list(self._people):
            session.send_ephemeral(frame)

    def send_ephemeral_to_all(self, frame: bytes, without: str = "") -> None:
        """Write an ephemeral frame to everyone, observers included."""
        self.send_ephemeral(list(self._sessions), frame, without)
        for session in self._observers:
            session.send_ephemeral(frame)
