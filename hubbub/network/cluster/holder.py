"""The sessions of a gateway, and the link to the hub that owns the network.

    peer -> HeldSession -> link -> the owner
    the owner -> link -> commits -> the HeldSessions of all recipients

A gateway has no authoritative state. It learns memberships from the current owner, in order, and
reads messages that a session missed from the log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Sequence
from contextlib import suppress

from hubbub.config.models import Limits
from hubbub.errors import HubbubError, LogDamaged, StoreUnavailable
from hubbub.logs import log_failure
from hubbub.network.cluster.held import HeldSession
from hubbub.network.cluster.link import MessageLink
from hubbub.network.cluster.messages import (
    Acked,
    AnswerFrame,
    ClosedByOwner,
    Committed,
    EventPage,
    FromOwner,
    Greeting,
    Leaving,
    MemberChanged,
    PeerFrame,
    PresenceChanged,
    ReadPage,
    SessionGone,
    ShownPresence,
    Silent,
    Started,
    Unreadable,
    Write,
)
from hubbub.network.log import Entry
from hubbub.network.metrics import HubMetrics
from hubbub.network.session import Session
from hubbub.network.stored import StoredEvent
from hubbub.protocol.codec import Call, Decoder, PlainSendResult, SharedEvent
from hubbub.protocol.codes import CloseCode
from hubbub.protocol.frames import Cursor, Identify, Reconnect, Signal
from hubbub.protocol.operations import Input
from hubbub.protocol.wire import Outlet, SessionState
from hubbub.waiting import settle

__all__ = ["OwnerLink", "SessionHolder"]


class _LinkLost(HubbubError):
    """The link was lost before the owner answered."""


class _Audience:
    """The sessions at this gateway, by participant and scope."""

    def __init__(self) -> None:
        self.observers: dict[HeldSession, None] = {}
        self._sessions: dict[str, dict[HeldSession, None]] = {}
        self._members: dict[int, set[str]] = {}
        self._scopes: dict[str, set[int]] = {}

    def of(self, participant: str) -> Collection[HeldSession]:
        return self._sessions.get(participant, ())

    def members(self, scope: int) -> Collection[str]:
        return self._members.get(scope, ())

    def enter(self, session: HeldSession, scopes: Sequence[int]) -> None:
        """Add a session whose participant is in these scopes."""
        who = session.participant
        if session.observe:
            self.observers[session] = None
            return
        for scope in self._scopes.get(who, set()) - set(scopes):
            self._members[scope].discard(who)
        for scope in scopes:
            self._members.setdefault(scope, set()).add(who)
        self._scopes[who] = set(scopes)
        self._sessions.setdefault(who, {})[session] = None

    def leave(self, session: HeldSession) -> None:
        self.observers.pop(session, None)
        who = session.participant
        held = self._sessions.get(who, {})
        held.pop(session, None)
        if not held and who in self._sessions:
            del self._sessions[who]
            for scope in self._scopes.pop(who):
                self._members[scope].discard(who)

    def change(self, changed: MemberChanged) -> None:
        scopes = self._scopes.get(changed.participant)
        if scopes is None:
            return
        members = self._members.setdefault(changed.scope, set())
        (scopes.add if changed.joined else scopes.discard)(changed.scope)
        (members.add if changed.joined else members.discard)(changed.participant)


class OwnerLink:
    """The link to the owner, as the gateway sees it (a `LinkEnd`)."""

    def __init__(self, holder: SessionHolder, wire: MessageLink[FromOwner]):
        self._holder, self._wire = holder, wire
        self.send = wire.send
        self.number = 0
        self.greeting: Greeting | None = None
        self.gone = asyncio.Event()
        """Set when the link is lost."""
        self.greeted = asyncio.Event()
        self._pages: dict[int, asyncio.Future[Sequence[StoredEvent]]] = {}
        self._reads = 0
        self._acks: dict[int, tuple[int, bool]] = {}
        wire.flushing = self._send_acks

    def opened(self) -> None:
        pass  # the owner sends its greeting first

    def received(self, message: FromOwner) -> None:
        match message:
            case Committed():
                self._holder.committed(message)
            case AnswerFrame(no=no, ref=ref, frame=frame):
                if (session := self._holder.sessions.get(no)) is not None:
                    session.answered(ref, frame)
                    self._holder.settle()
            case Write():
                self._holder.write(message)
            case Started():
                self._holder.started(message)
            case ClosedByOwner(no=no, code=code, reason=reason):
                if (session := self._holder.sessions.get(no)) is not None:
                    session.close(CloseCode(code), reason)
            case MemberChanged():
                self._holder.audience.change(message)
            case EventPage(id=id, events=events):
                self._answer(id, events)
            case Unreadable(id=id, reason=reason, damaged=damaged):
                unavailable = StoreUnavailable(reason)
                self._answer(id, unavailable if damaged is None else LogDamaged(damaged, reason))
            case Greeting():
                self.number, self.greeting = message.link, message
                self._holder.linked(self, message)
                self.greeted.set()
            case Leaving():
                self._holder.leaving()
            case PresenceChanged(online=online, offline=offline):
                self._holder.shown.update(online)
                self._holder.shown.difference_update(offline)

    async def read(
        self, session: HeldSession, after: int, upto: int, limit: int
    ) -> Sequence[StoredEvent]:
        """Events of the session's participant. Raises `_LinkLost` and the errors of stores."""
        self._reads += 1
        loop = asyncio.get_running_loop()
        asked: asyncio.Future[Sequence[StoredEvent]] = loop.create_future()
        self._pages[self._reads] = asked
        who, kind, observe = session.participant, session.kind, session.observe
        self.send(ReadPage(self._reads, who, kind, observe, after, upto, limit))
        return await asked

    def _answer(self, id: int, answer: Sequence[StoredEvent] | Exception) -> None:
        if (asked := self._pages.pop(id, None)) is not None:
            settle(asked, answer)

    def acknowledge(self, no: int, seq: int, *, wakes: bool) -> None:
        """Queue an acknowledgement; those of one iteration of the loop are sent together."""
        before, woken = self._acks.get(no, (0, False))
        self._acks[no] = (max(seq, before), wakes or woken)
        self._wire.touch()

    def send_in_order(self, message: PeerFrame | SessionGone) -> None:
        """Send a message after the earlier acknowledgements of its session."""
        if (ack := self._acks.pop(message.no, None)) is not None:
            self.send(Acked(message.no, *ack))
        self.send(message)

    def _send_acks(self) -> None:
        acks, self._acks = self._acks, {}
        for no, (seq, wakes) in acks.items():
            self.send(Acked(no, seq, wakes))

    def lost(self) -> None:
        for id in list(self._pages):
            self._answer(id, _LinkLost("the owner of the network is gone"))
        self._holder.unlinked(self)
        self.gone.set()
        self.greeted.set()

    def close(self) -> None:
        self._wire.close()

    def cut(self) -> None:
        self._wire.cut()


class SessionHolder:
    """The `SessionHost` of a gateway's sessions."""

    def __init__(
        self,
        monotonic: Callable[[], float],
        spawn: Callable[[Coroutine[object, object, None]], None],
    ):
        self.spawn, self._monotonic = lambda work: spawn(log_failure(work)), monotonic
        self._adopt(Limits())
        self.metrics = HubMetrics()
        self.sessions: dict[int, HeldSession] = {}
        self.audience = _Audience()
        self.head = 0
        self._numbers = 0
        self._link: OwnerLink | None = None
        self._greeting: Greeting | None = None
        self.shown: set[str] = set()
        """Participants that owners announced as present; the next owner only knows those
        returning."""
        self.draining = False
        self._settled = asyncio.Event()
        """Set when it is draining and all calls are answered."""
        self.silent: Callable[[str], object] = lambda participant: self.send_to_owner(
            Silent(participant)
        )
        """Called with the participant of a connection closed for not answering a ping."""

    # Sockets ------------------------------------------------------------------------------

    def attach(self, outlet: Outlet, address: str = "") -> HeldSession:
        """Create a session for a new connection, and greet its peer as the owner would."""
        assert self._greeting is not None, "a gateway listens only after the greeting"
        self._numbers += 1
        session = HeldSession(self, outlet, self._monotonic(), address, self._numbers)
        self.sessions[session.no] = session
        session.write(self._greeting.hello)
        if self.draining:
            session.close(CloseCode.DRAIN, "the gateway is stopping")
        return session

    def detach(self, session: Session) -> None:
        assert isinstance(session, HeldSession)
        del self.sessions[session.no]
        self.audience.leave(session)
        self.settle()
        self.metrics.sessions = len(self.sessions)
        self.send_to_owner(SessionGone(session.no))

    async def drain(self, after_s: float, within_s: float) -> None:
        """Ask all peers to reconnect, and close once their calls are answered."""
        self.draining = True
        frame = Reconnect(after_s=after_s).model_dump_json().encode()
        for session in list(self.sessions.values()):
            session.write(frame)
        self.settle()
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._settled.wait()
        for session in list(self.sessions.values()):
            session.close(CloseCode.DRAIN, "the gateway is stopping")

    def settle(self) -> None:
        """Check whether all calls are answered, when draining."""
        if self.draining and all(session.is_answered for session in self.sessions.values()):
            self._settled.set()

    # The sessions' host -------------------------------------------------------------------

    def send_to_owner(self, message: object) -> None:
        if self._link is None:
            return
        if isinstance(message, PeerFrame | SessionGone):
            self._link.send_in_order(message)
        else:
            self._link.send(message)

    def only_reads(self, operation: str) -> bool:
        return self._greeting is not None and operation in self._greeting.reads

    def call(self, session: Session, call: Call) -> None:
        raise NotImplementedError("held sessions forward calls unread")

    def signal(self, session: Session, signal: Signal) -> None:
        raise NotImplementedError("held sessions forward signals unread")

    def send_result(self, entry: Entry) -> PlainSendResult:
        raise NotImplementedError("the owner answers")

    def identify(self, session: Session, frame: Identify) -> None:
        assert isinstance(session, HeldSession)
        session.take_identify(frame)

    def acknowledged(self, session: Session, seq: int, *, wakes: bool) -> None:
        assert isinstance(session, HeldSession)
        session.acked = max(seq, session.acked)
        if self._link is not None:
            self._link.acknowledge(session.no, seq, wakes=wakes)

    async def read_events(
        self, session: Session, after: int, upto: int, limit: int
    ) -> Sequence[StoredEvent]:
        assert isinstance(session, HeldSession)
        while session.state is SessionState.READY:
            await session.until_moved()
            if self._link is None:
                break  # the session has ended with the gateway, or in the middle of a move
            try:
                return await self._link.read(session, after, upto, limit)
            except _LinkLost:
                continue
        return ()

    # The owner ----------------------------------------------------------------------------

    def linked(self, link: OwnerLink, greeting: Greeting) -> None:
        """Continue all sessions at a new owner."""
        before, self._greeting = self._greeting, greeting
        self._link, self.head = link, greeting.head
        self._adopt(Limits.model_validate_json(greeting.limits))
        for session in list(self.sessions.values()):
            if session.state is SessionState.CONNECTED or before is None:
                continue
            place = Cursor(epoch=before.epoch, seq=0, run=before.run or None)
            if session.state is SessionState.READY and greeting.epoch != before.epoch:
                session.close(CloseCode.STATE_LOST, "the log was replaced; reconnect")
            elif session.state is SessionState.READY and greeting.operations != before.operations:
                session.close(CloseCode.DRAIN, "the operations have changed; reconnect")
            else:
                link.send(session.rejoining(place, self._monotonic()))
        if self.shown:
            link.send(ShownPresence(list(self.shown)))

    def _adopt(self, limits: Limits) -> None:
        self.limits = limits
        # It decodes no calls, as only the owner has the operations.
        self.decoder = Decoder({"call": Input}, max_bytes=limits.frame, max_depth=limits.json_depth)

    def leaving(self) -> None:
        """Handle that the owner is stopping."""
        for session in list(self.sessions.values()):
            session.move()

    def unlinked(self, link: OwnerLink) -> None:
        if self._link is not link:
            return
        self._link = None
        for session in list(self.sessions.values()):
            session.unlinked()

    # Messages of the owner ----------------------------------------------------------------

    def started(self, started: Started) -> None:
        session = self.sessions.get(started.no)
        if session is None or session.state is SessionState.CLOSED:
            return
        self.head = max(self.head, started.head)
        if session.state is SessionState.READY:
            self.audience.enter(session, started.scopes)
            session.goes_on(started)
        else:
            session.began(started, self._monotonic())
            self.audience.enter(session, started.scopes)

    def write(self, message: Write) -> None:
        for no in message.nos:
            session = self.sessions.get(no)
            if session is None:
                continue
            if message.ephemeral:
                session.send_ephemeral(message.frame)
            else:
                session.write(message.frame)

    def committed(self, entry: Committed) -> None:
        """Offer an entry to every session of its recipients."""
        self.head = max(self.head, entry.seq)
        self.metrics.passed_on += 1
        audience, event = self.audience, SharedEvent(entry.seq, entry.tseq, entry.body)
        reached = entry.recipients if entry.scope < 0 else audience.members(entry.scope)
        for participant in reached:
            if participant != entry.sender:
                wake = entry.wakes.get(participant, b"")
                for session in audience.of(participant):
                    session.offer(event, wake)
        mine = self._link is not None and entry.link == self._link.number
        for session in audience.of(entry.sender):
            if mine and session.no == entry.no:
                session.note_sent(entry.seq)
            else:
                session.offer(event, b"")
        for session in audience.observers:
            session.offer(event, b"")
