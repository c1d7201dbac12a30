"""The owner's side: gateways connect to the hub's port, and their sessions are the hub's.

A `RemoteSession` is a session without a stream: it joins, calls and is answered like any other.
Commits are left to its gateway, which receives each entry once for all its sessions.
"""

from __future__ import annotations

import asyncio
import hmac
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from hashlib import sha256

from hubbub.errors import LogDamaged, OperationError, StoreUnavailable
from hubbub.network.caller import Caller
from hubbub.network.cluster.link import NAME_HEADER, PATH, PROTOCOL, MessageLink
from hubbub.network.cluster.messages import (
    Acked,
    AnswerFrame,
    ClosedByOwner,
    Committed,
    EventPage,
    FromGateway,
    Greeting,
    Joining,
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
    encode,
    read_from_gateway,
)
from hubbub.network.gateway import Gateway
from hubbub.network.kernel import Kernel
from hubbub.network.log import Entry
from hubbub.network.path_switch import Doors
from hubbub.network.service import Registry
from hubbub.network.session import Session, SessionHost
from hubbub.network.stored import StoredEvent
from hubbub.protocol.codec import (
    PlainSendResult,
    SharedEvent,
    encode_error,
    encode_result,
    encode_wake,
)
from hubbub.protocol.codes import CloseCode, ErrorCode
from hubbub.protocol.wire import SessionState

__all__ = ["GatewayDoor", "RemoteSession"]

BACK_WITHIN_S = 3.0
"""Seconds for participants at other gateways to return after a change of owner; any that do not
have left."""
SILENT_S = 10.0
"""Seconds of silence after which a gateway is cut, and its participants are absent."""


class RemoteSession(Session):
    """The hub's half of a session whose socket a gateway holds."""

    __slots__ = ("_link", "_ready", "no", "resumes")

    def __init__(
        self, hub: SessionHost, outlet: RemoteOutlet, opened: float, address: str, *, resumes: bool
    ):
        super().__init__(hub, outlet, opened, address)
        self._link, self.no = outlet.link, outlet.no
        self.resumes = resumes
        self._ready = b""

    @property
    def waiter_id(self) -> tuple[int, int]:
        return self._link.number, self.no

    def write(self, frame: bytes) -> None:
        if self.state is SessionState.IDENTIFYING:
            self._ready = frame
        elif self.state is not SessionState.CONNECTED:  # the gateway greets the peer itself
            self._outlet.write(frame)

    def result(self, ref: str, value: bytes | PlainSendResult, *, duplicate: bool = False) -> None:
        self._link.send(AnswerFrame(self.no, ref, encode_result(ref, value, duplicate=duplicate)))

    def error(self, error: OperationError, ref: str | None) -> None:
        left = self._link.leaving and error.code == ErrorCode.STORE_UNAVAILABLE
        if not left and error.code != ErrorCode.DRAINING:  # else the call goes to the next owner
            self._link.send(AnswerFrame(self.no, ref or "", encode_error(error, ref)))

    def sent(self, ref: str, entry: Entry, *, duplicate: bool = False) -> None:
        self.result(ref, self._hub.send_result(entry), duplicate=duplicate)

    def send_ephemeral(self, frame: bytes) -> None:
        self._link.write(self.no, frame, ephemeral=True)

    def start(self, caller: Caller, cursor: int, *, behind: bool) -> None:
        super().start(caller, cursor, behind=behind)
        self._link.started(self, cursor, self._ready, behind=behind)
        self._ready = b""

    def close(self, code: CloseCode, reason: str) -> None:
        before = self.state
        super().close(code, reason)
        self._link.detached(self, before)

    def lost(self) -> None:
        before = self.state
        super().lost()
        self._link.detached(self, before)

    # The gateway does the stream -----------------------------------------------------------

    def offer(self, event: SharedEvent, wake: bytes) -> None:
        pass

    def drained(self) -> None:
        pass

    def _catch_up(self) -> None:
        pass


class RemoteOutlet:
    """The `Outlet` of a session whose socket a gateway holds."""

    __slots__ = ("link", "no")

    def __init__(self, link: GatewayLink, no: int):
        self.link, self.no = link, no

    def write(self, frame: bytes) -> None:
        self.link.write(self.no, frame, ephemeral=False)

    def close(self, code: int, reason: str) -> None:
        self.link.closed(self.no, code, reason)

    def identified(self) -> None:
        pass

    def unsent(self) -> int:
        return 0  # the gateway checks that


class GatewayLink:
    """One gateway, as the owner sees it."""

    name = ""
    """The gateway's own name."""

    def __init__(self, door: GatewayDoor, number: int, wire: MessageLink[FromGateway]):
        self._door, self.number, self._wire = door, number, wire
        self.send, self.send_encoded = wire.send, wire.send_encoded
        wire.flushing = self._send_gathered
        self._sessions: dict[int, RemoteSession] = {}
        self._participants: Counter[str] = Counter()
        self._observers: set[int] = set()
        self._left = False
        self._frame, self._nos, self._ephemeral = b"", list[int](), False
        """A collected frame for many sessions, such as presence, which goes to all."""

    # Out ----------------------------------------------------------------------------------

    def write(self, no: int, frame: bytes, *, ephemeral: bool) -> None:
        if self.leaving:
            return  # "reconnect", which this gateway's peers need not
        if frame is self._frame and ephemeral == self._ephemeral:
            self._nos.append(no)
            return
        self._send_gathered()
        if ephemeral:
            self._frame, self._nos, self._ephemeral = frame, [no], True
            self._wire.touch()
        else:
            self.send(Write([no], frame, False))

    def _send_gathered(self) -> None:
        if self._nos:
            nos, self._nos = self._nos, []
            frame, self._frame = self._frame, b""
            self.send(Write(nos, frame, True))

    def closed(self, no: int, code: int, reason: str) -> None:
        if not self.leaving:
            self.send(ClosedByOwner(no, code, reason))

    def started(self, session: RemoteSession, cursor: int, ready: bytes, *, behind: bool) -> None:
        caller = session.caller
        assert caller is not None, "it has joined"
        self._participants[caller.participant] += 1
        if session.observe:
            self._observers.add(session.no)
        self.send(
            Started(
                no=session.no,
                participant=caller.participant,
                kind=caller.kind,
                cursor=cursor,
                behind=behind,
                turns=session.turns,
                observe=session.observe,
                received=session.received,
                head=self._door.head,
                scopes=sorted(self._door.scopes(caller.participant)),
                ready=ready,
            )
        )

    def concerns(self, entry: Entry) -> bool:
        """Whether any participant at the gateway receives the entry, or sent it."""
        if entry.thread.scope is not None or self._observers:
            return True
        present, draft = self._participants, entry.draft
        return draft.sender_id in present or any(p in present for p in draft.recipients)

    # In (the link's `LinkEnd`) ------------------------------------------------------------

    def opened(self) -> None:
        self.send(self._door.opened(self))
        self.send(PresenceChanged(self._door.present(), []))

    def received(self, message: FromGateway) -> None:
        match message:
            case PeerFrame(no=no, frame=frame):
                if (session := self._sessions.get(no)) is not None:
                    session.receive(frame)
            case Acked(no=no, seq=seq, wakes=wakes):
                if (session := self._sessions.get(no)) is not None and not session.observe:
                    self._door.acknowledged(session, seq, wakes=wakes)
            case Joining():
                self._join(message)
            case SessionGone(no=no):
                if (session := self._sessions.get(no)) is not None:
                    session.lost()
            case ReadPage():
                self._door.spawn(self._read(message))
            case ShownPresence(participants=participants):
                self._door.shown(participants)
            case Silent(participant=participant):
                self._door.silent(participant)

    def _join(self, joining: Joining) -> None:
        session = self._door.attach(RemoteOutlet(self, joining.no), joining)
        self._sessions[joining.no] = session
        session.receive(joining.frame)

    async def _read(self, asked: ReadPage) -> None:
        try:
            page = await self._door.events_of(asked)
        except LogDamaged as error:
            self.send(Unreadable(asked.id, str(error), error.seq))
        except StoreUnavailable as error:
            if not self.leaving:
                self.send(Unreadable(asked.id, str(error)))
        else:
            self.send(EventPage(asked.id, list(page)))

    def detached(self, session: RemoteSession, before: SessionState) -> None:
        """Forget a session that ended; `before` is its last state."""
        self._sessions.pop(session.no, None)
        self._observers.discard(session.no)
        if before is SessionState.READY:
            self._participants[session.participant] -= 1
            self._participants += Counter()  # drops zero counts

    def lost(self) -> None:
        self._door.closed(self)
        for session in list(self._sessions.values()):
            session.lost()

    @property
    def leaving(self) -> bool:
        """Whether the owner is stopping, so that open calls go to the next one."""
        return self._left or self._door.draining

    def leave(self) -> None:
        """Announce that the owner is stopping, or lost its store."""
        self._left = True
        self._send_gathered()
        self.send(Leaving())

    def close(self) -> None:
        self._wire.close()


class GatewayDoor:
    """Accepts gateways with the token, within `open`."""

    def __init__(self, kernel: Kernel, gateway: Gateway, registry: Registry, token: str):
        self._kernel, self._gateway, self._registry = kernel, gateway, registry
        self._token = token
        self._links: dict[GatewayLink, None] = {}
        self._number = 0
        self.scopes, self.spawn = kernel.state.members.scopes, kernel.spawn
        self.acknowledged = gateway.acknowledged

    @asynccontextmanager
    async def open(
        self, listen: Callable[[Callable[[Sequence[Entry]], None]], None]
    ) -> AsyncIterator[Doors]:
        """`listen` registers a listener for commits. Gateways are disconnected at the end."""
        listen(self._committed)
        self._kernel.state.members.changed = self._member_changed
        self._kernel.state.presence.changed = self._presence_changed
        self._gateway.leaving = self._leave
        self._kernel.metrics.gateways = lambda: sorted(link.name for link in self._links)
        try:
            yield {PATH: self._protocol}
        finally:
            for link in list(self._links):
                link.close()

    @property
    def head(self) -> int:
        return self._kernel.log.head

    @property
    def draining(self) -> bool:
        return self._kernel.draining.is_set()

    def silent(self, participant: str) -> None:
        self._gateway.silent(participant)

    # Links --------------------------------------------------------------------------------

    def _protocol(self, answered: Callable[[], None]) -> MessageLink[FromGateway]:
        wire = MessageLink(
            read_from_gateway,
            lambda transport, head: self._agree(link, transport, head),
            SILENT_S,
        )
        self._number += 1
        wire.end = link = GatewayLink(self, self._number, wire)
        return wire

    def _agree(self, link: GatewayLink, transport: asyncio.Transport, head: bytes) -> bool:
        headers = {
            name.strip().lower(): value.strip()
            for name, _, value in (line.partition(b":") for line in head.split(b"\r\n")[1:])
        }
        wanted = b"Bearer " + self._token.encode()
        if not hmac.compare_digest(headers.get(b"authorization", b""), wanted):
            _refuse(transport, b"403 Forbidden", b"this needs the token of gateways")
        elif headers.get(b"upgrade", b"").decode("latin-1") != PROTOCOL:
            _refuse(transport, b"426 Upgrade Required", f"this hub speaks {PROTOCOL}".encode())
        elif self.draining:
            _refuse(transport, b"503 Service Unavailable", b"the hub is stopping")
        else:
            link.name = headers.get(NAME_HEADER.lower().encode(), b"").decode("latin-1")
            answer = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "
            transport.write(f"{answer}{PROTOCOL}\r\n\r\n".encode())
            return True
        return False

    def opened(self, link: GatewayLink) -> Greeting:
        """Register a gateway; returns its greeting."""
        self._links[link] = None
        config, state = self._kernel.config, self._kernel.state
        hello = self._gateway.hello().model_copy(update={"run": None})
        return Greeting(
            link=link.number,
            epoch=state.epoch,
            run=state.run,
            head=self.head,
            # Without a run, as these sockets outlive runs of hubs. The epoch identifies the log.
            hello=hello.model_dump_json(exclude_none=True).encode(),
            limits=config.limits.model_dump_json().encode(),
            open_to_all=config.auth == "open",
            hosts=list(config.hosts),
            compression=config.compression,
            reads=[op.name for op in self._registry.values() if op.permission == "read"],
            operations=self._digest(),
        )

    def _digest(self) -> str:
        rows = sorted((op.name, op.permission, op.description) for op in self._registry.values())
        return sha256(repr(rows).encode()).hexdigest()

    def closed(self, link: GatewayLink) -> None:
        self._links.pop(link, None)

    def _leave(self) -> None:
        for link in self._links:
            link.leave()

    # Sessions -----------------------------------------------------------------------------

    def attach(self, outlet: RemoteOutlet, joining: Joining) -> RemoteSession:
        """Create the hub's half of a session at the gateway of `outlet`."""
        since_s, now = joining.since_s, self._kernel.clock.monotonic()
        return self._gateway.begin(
            RemoteSession(
                self._gateway,
                outlet,
                now - (since_s or 0.0),
                joining.address,
                resumes=since_s is not None,
            )
        )

    async def events_of(self, asked: ReadPage) -> Sequence[StoredEvent]:
        participant = None if asked.observe else asked.participant
        return await self._gateway.events_of(
            participant, asked.kind, asked.after, asked.upto, asked.limit
        )

    def shown(self, participants: Sequence[str]) -> None:
        """Check later whether participants that were announced as present have returned."""
        missed = self._kernel.notifications.missed
        asyncio.get_running_loop().call_later(BACK_WITHIN_S, missed, participants)

    def present(self) -> list[str]:
        return list(self._kernel.state.presence.online)

    # Messages to gateways -----------------------------------------------------------------

    def _committed(self, entries: Sequence[Entry]) -> None:
        if not self._links:
            return
        for entry in entries:
            links = [link for link in self._links if link.concerns(entry)]
            if links:
                message = encode(_committed(entry))
                for link in links:
                    link.send_encoded(message)
                self._kernel.metrics.passed_on += len(links)

    def _member_changed(self, participant: str, scope: int, joined: bool) -> None:
        for link in self._links:
            link.send(MemberChanged(participant, scope, joined))

    def _presence_changed(self, came: list[str], went: list[str]) -> None:
        for link in self._links:
            link.send(PresenceChanged(came, went))


def _committed(entry: Entry) -> Committed:
    draft, waiter, scope = entry.draft, entry.waiter, entry.thread.scope
    link, no = waiter.waiter_id if isinstance(waiter, RemoteSession) else (0, 0)
    return Committed(
        seq=entry.seq,
        tseq=entry.tseq,
        body=entry.body,
        sender=draft.sender_id,
        scope=-1 if scope is None else scope,
        recipients=[] if scope is not None else list(draft.recipients),
        wakes=dict(_wakes(entry)) if entry.wakes else {},
        link=link,
        no=no,
    )


def _wakes(entry: Entry) -> Iterator[tuple[str, bytes]]:
    for participant, reason, reply in entry.decisions:
        if reply is not None:
            yield participant, encode_wake(reason, reply, f"{participant}-m{entry.seq}")


def _refuse(transport: asyncio.Transport, status: bytes, why: bytes) -> None:
    transport.write(
        b"HTTP/1.1 %b\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n"
        b"Connection: close\r\n\r\n%b\n" % (status, len(why) + 1, why)
    )
