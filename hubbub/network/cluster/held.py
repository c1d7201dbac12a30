"""A gateway's half of a session: the socket and the stream, which outlive the network's owner.

While there is no owner, calls wait. Unanswered calls are repeated to the next owner, in order and
with the same cid, which it recognises if its predecessor wrote them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from typing import Protocol

import msgspec
from msgspec import Struct

from hubbub.errors import OperationError
from hubbub.ids import new_ulid
from hubbub.network.cluster.messages import Joining, PeerFrame, Started
from hubbub.network.session import Session, SessionHost
from hubbub.protocol.codes import CloseCode, ErrorCode
from hubbub.protocol.frame_errors import FrameError
from hubbub.protocol.frames import Cursor, Identify, Signal
from hubbub.protocol.messages import Kind
from hubbub.protocol.wire import Outlet, SessionState, complaint

__all__ = ["HeldSession", "HeldSessionHost"]

MAX_HELD = 4
"""Limit for a session's calls that wait for an owner, as a multiple of the largest frame."""
_MOVING, _MOVED = (
    Signal(type="moving", sender="hub", data={"state": state}).encoded()
    for state in ("moving", "moved")
)
_RESULT = b'{"op":"result"'


class _CallHead(Struct):
    """The part of a frame that a gateway reads; the owner validates the rest."""

    op: str
    ref: str = ""
    name: str = ""
    cid: str | None = None


_read_head = msgspec.json.Decoder(_CallHead).decode


class _Unanswered(Struct):
    """A call that was forwarded or waits for that."""

    number: int
    frame: bytes
    repeatable: bool


class HeldSessionHost(SessionHost, Protocol):
    """The gateway as a held session sees it."""

    def send_to_owner(self, message: object) -> None:
        """Send a message to the owner, if there is one."""
        ...

    def only_reads(self, operation: str) -> bool: ...

    @property
    def draining(self) -> bool:
        """Whether the gateway accepts no more calls."""
        ...


class HeldSession(Session):
    """One socket of a gateway."""

    __slots__ = (
        "_asked_from",
        "_calls",
        "_held",
        "_holder",
        "_identify",
        "_kind",
        "_moved",
        "_raw_identify",
        "_unanswered",
        "_who",
        "acked",
        "no",
        "ready_at",
    )

    def __init__(
        self, holder: HeldSessionHost, outlet: Outlet, opened: float, address: str, no: int
    ):
        super().__init__(holder, outlet, opened, address)
        self._holder, self.no = holder, no
        self._who = ""
        self._kind: Kind = "service"
        self._identify: Identify | None = None
        self._raw_identify = b""
        self.ready_at = 0.0
        """When it joined."""
        self.acked = 0
        self._moved: asyncio.Event | None = None
        """Set when the move to another owner ends; None if no move is in progress."""
        self._unanswered: dict[str, deque[_Unanswered]] = {}
        self._calls = self._held = 0
        self._asked_from = 0

    @property
    def participant(self) -> str:
        return self._who

    @property
    def kind(self) -> Kind:
        return self._kind

    @property
    def is_person(self) -> bool:
        return self._kind == "human"

    # Frames in ----------------------------------------------------------------------------

    def receive(self, frame: bytes) -> None:
        if self.state is not SessionState.READY:
            if self._accepts_early(frame):
                self._take_from_stranger(frame)
            return
        head = _head(frame)
        if head is not None and len(frame) <= self._hub.limits.frame:
            if head.op == "call" and 0 < len(head.ref) <= 64:
                self._ask(head, frame)
                return
            if head.op in ("call", "signal"):
                if not self.moving:
                    self._holder.send_to_owner(PeerFrame(self.no, frame))
                return
        try:
            read = self._hub.decoder.decode(frame)
        except FrameError as error:
            self._reject(error, error.ref)
            return
        if read.op == "ack":
            self._acknowledge(read.seq)
        else:
            self._reject(OperationError(*(complaint(self.state, read.op) or ())), None)

    def _take_from_stranger(self, frame: bytes) -> None:
        head = _head(frame)
        if head is not None and head.op in ("call", "ack", "signal"):
            wrong = OperationError(*(complaint(self.state, head.op) or ()))
            self._reject(wrong, head.ref or None)
            return
        try:
            read = self._hub.decoder.decode(frame)
        except FrameError as error:
            self._reject(error, error.ref)
            return
        self._raw_identify = frame
        self._take_early(read)

    def _ask(self, head: _CallHead, frame: bytes) -> None:
        if self._holder.draining:
            return  # the peer repeats the call where it reconnects, in the same order
        repeatable = True
        if head.cid is None and not self._holder.only_reads(head.name):
            repeatable = b'"cid"' not in frame
            if repeatable:
                at = frame.index(b"{") + 1
                frame = b'%b"cid":"%b",%b' % (frame[:at], new_ulid().encode(), frame[at:])
        if self.moving:
            self._held += len(frame)
            if self._held > MAX_HELD * self._hub.limits.frame:
                text = "the network is moving to another hub, and too many calls are waiting"
                error = OperationError(ErrorCode.DRAINING, text, temporary=True, retry_after_s=1.0)
                self.error(error, head.ref)
                return
        self._calls += 1
        call = _Unanswered(self._calls, frame, repeatable)
        self._unanswered.setdefault(head.ref, deque()).append(call)
        if not self.moving:
            self._holder.send_to_owner(PeerFrame(self.no, frame))

    # Frames out ---------------------------------------------------------------------------

    def answered(self, ref: str, frame: bytes) -> None:
        """Forward the owner's answer to a call, or to another frame if `ref` is empty."""
        waiting = self._unanswered.get(ref)
        if waiting is not None:
            waiting.popleft()
            if not waiting:
                del self._unanswered[ref]
            if self.bad_frames and frame.startswith(_RESULT):
                self.count_good_call()
        self._outlet.write(frame)

    @property
    def is_answered(self) -> bool:
        """Whether all calls are answered."""
        return not self._unanswered

    def _in_order(self) -> Iterator[_Unanswered]:
        calls = (call for waiting in self._unanswered.values() for call in waiting)
        return iter(sorted(calls, key=lambda call: call.number))

    @property
    def moving(self) -> bool:
        """Whether it has joined, and currently no owner accepts its calls."""
        return self._moved is not None

    # Joining, and moving to another owner --------------------------------------------------

    def take_identify(self, frame: Identify) -> None:
        """Forward the peer's `identify` to the owner, which checks it."""
        self._identify = frame
        self._holder.send_to_owner(Joining(self.no, self.address, self._raw_identify))

    def began(self, started: Started, now: float) -> None:
        """Start the stream, as the owner admitted the session."""
        self._who, self._kind = started.participant, started.kind
        self._raw_identify, self.ready_at = b"", now
        self.turns, self.observe = started.turns, started.observe
        self.received = started.received
        self.state = SessionState.READY
        self._outlet.identified()
        self._outlet.write(started.ready)
        self.last = self._read = started.cursor
        self._behind = started.behind
        self._catch_up()

    def move(self) -> None:
        """Hold back calls until there is another owner."""
        if self.state is SessionState.READY and self._moved is None:
            self._moved = asyncio.Event()
            self._held = 0
            self._outlet.write(_MOVING)

    def unlinked(self) -> None:
        """Handle the loss of the owner."""
        self.move()
        if self.live:
            self.live = False
            self._read = self.last
        if not all(call.repeatable for call in self._in_order()):
            self.close(CloseCode.STATE_LOST, "a call without cid was not answered; reconnect")

    def rejoining(self, place: Cursor, now: float) -> Joining:
        """The message to the next owner. `place` is the log's position with the last one."""
        if self.state is not SessionState.READY or self._identify is None:
            return Joining(self.no, self.address, self._raw_identify)
        self._asked_from = self.last
        cursor = place.model_copy(update={"seq": self.last})
        frame = self._identify.model_copy(update={"cursor": cursor})
        text = frame.model_dump_json(exclude_none=True).encode()
        return Joining(self.no, self.address, text, max(0.0, now - self.ready_at))

    def goes_on(self, started: Started) -> None:
        """Continue at the next owner."""
        if started.cursor != self._asked_from:
            self.close(CloseCode.STATE_LOST, "the log has changed; reconnect")
            return
        self._end_move()
        self._outlet.write(_MOVED)
        if self.acked and not self.observe:
            self._hub.acknowledged(self, self.acked, wakes=False)
        for call in self._in_order():
            self._holder.send_to_owner(PeerFrame(self.no, call.frame))
        self._catch_up()

    def _end_move(self) -> None:
        moved, self._moved = self._moved, None
        if moved is not None:
            moved.set()

    def close(self, code: CloseCode, reason: str) -> None:
        super().close(code, reason)
        self._end_move()

    def lost(self) -> None:
        super().lost()
        self._end_move()

    # The stream ---------------------------------------------------------------------------

    async def until_moved(self) -> None:
        """Wait for the end of a move to the next owner."""
        if self._moved is not None:
            await self._moved.wait()

    def _catch_up(self) -> None:
        if self._moved is None:
            super()._catch_up()

    def _go_live(self) -> None:
        if self._moved is None:  # else it could miss messages of scopes it joined
            super()._go_live()

    def note_sent(self, seq: int) -> None:
        """Record that the entry was sent on this socket."""
        if self._kind == "human":
            self._own_seqs.append(seq)


def _head(frame: bytes) -> _CallHead | None:
    try:
        return _read_head(frame)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
