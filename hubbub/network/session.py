"""One connection's conversation with the hub: frames in, frames out, and a cursor into the log.

A session that keeps up is `live`: commits are pushed to it at once. One that falls behind (its
window of unacknowledged events is full, or it just resumed) is a cursor that reads the log page by
page until it has caught up. Both paths write the same frames.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Protocol

from hubbub.config.models import Limits
from hubbub.errors import LogDamaged, OperationError, StoreUnavailable
from hubbub.mods.operation import bad_request, too_large
from hubbub.network.caller import Caller
from hubbub.network.log import Entry
from hubbub.network.metrics import HubMetrics
from hubbub.network.stored import StoredEvent
from hubbub.protocol.codec import (
    Call,
    Decoder,
    Frame,
    PlainSendResult,
    SharedEvent,
    encode_error,
    encode_result,
    encode_wake,
)
from hubbub.protocol.codes import CloseCode, ErrorCode
from hubbub.protocol.frame_errors import FrameError
from hubbub.protocol.frames import (
    STRANGER_BYTES,
    STRANGER_FRAMES,
    Identify,
    Signal,
)
from hubbub.protocol.wire import Outlet, SessionState, complaint

__all__ = ["Session", "SessionHost"]

PAGE = 32
"""Events read from the store at a time: 2 MiB if all are as large as the limits allow."""
OWN_SEQS = 128
"""Own messages that a socket is not sent again when it reads the log; the client has their seqs."""
MAX_READS = 4
"""Concurrent calls that read; more would pile up answers before it shows whether the peer takes
them.
"""
CHECK_EVERY = 64 * 1024
"""Bytes of events after which a live session checks whether the peer keeps up."""

_READY, _CLOSED = SessionState.READY, SessionState.CLOSED
"""Globals, as enum member access is slow in Python 3.11."""


class SessionHost(Protocol):
    """The hub as a session sees it."""

    limits: Limits
    decoder: Decoder
    metrics: HubMetrics
    spawn: Callable[[Coroutine[object, object, None]], None]

    @property
    def head(self) -> int:
        """The last committed position."""
        ...

    def call(self, session: Session, call: Call) -> None:
        """Run an operation and send its answer."""
        ...

    def signal(self, session: Session, signal: Signal) -> None:
        """Forward an ephemeral frame."""
        ...

    def identify(self, session: Session, frame: Identify) -> None:
        """Admit or refuse the peer."""
        ...

    def acknowledged(self, session: Session, seq: int, *, wakes: bool) -> None:
        """The participant has everything up to `seq`, including wakes if `wakes` is true."""
        ...

    async def read_events(
        self, session: Session, after: int, upto: int, limit: int
    ) -> Sequence[StoredEvent]:
        """The next events for a session that is behind."""
        ...

    def send_result(self, entry: Entry) -> PlainSendResult:
        """The result for the sender of a committed entry."""
        ...

    def detach(self, session: Session) -> None:
        """Forget a session that has ended."""
        ...


class Session:
    """The hub's side of one socket (an `Inlet`). All methods run in the hub's loop."""

    __slots__ = (
        "_behind",
        "_catching_up",
        "_hub",
        "_last_wake",
        "_next_wake",
        "_outlet",
        "_own_seqs",
        "_read",
        "_reads",
        "_strange_frames",
        "_unacked",
        "_unchecked",
        "address",
        "bad_frames",
        "behind",
        "caller",
        "calls_over_rate",
        "last",
        "live",
        "observe",
        "opened",
        "received",
        "state",
        "turns",
    )

    resumes = False
    """Whether the peer already joined at another hub or over another link and keeps its state: it
    gets no `ready` and does not replace a later connection."""

    def __init__(self, hub: SessionHost, outlet: Outlet, opened: float, address: str = ""):
        self._hub, self._outlet, self.opened = hub, outlet, opened
        self.address = address
        """The peer's address; empty in the same process."""
        self.state = SessionState.CONNECTED
        self.caller: Caller | None = None
        self.live = False
        self.turns = self.observe = False
        self.last = 0
        """seq of the last event written, which becomes the next one's `prev`."""
        self.received = 0
        """How much of the stream the peer received on an earlier connection. Events up to there
        take no room in the window, as the peer may need all of them before it acknowledges any."""
        self._read = 0
        """How far the log has been read, in a session that is not live."""
        self._unacked: deque[int] = deque()
        self._own_seqs: deque[int] = deque(maxlen=OWN_SEQS)
        """A person's messages from this socket, which are skipped when it reads the log."""
        self.behind: deque[Call] | None = None
        """Calls that wait for an earlier write of this session; None if no write is in progress."""
        self._unchecked = 0
        """Bytes of events written since the last check of the unsent bytes."""
        self._catching_up = False
        self._behind = False
        """Whether events missed before joining are still being sent."""
        self._next_wake = self._last_wake = 0
        """The first unacknowledged wake, or a position before it; and the last wake sent."""
        self.bad_frames = 0
        """Bad frames not yet offset by good ones."""
        self._strange_frames = 0
        """Frames before `ready`."""
        self._reads: asyncio.Semaphore | None = None
        self.calls_over_rate = 0
        """Calls over the limit, not yet offset by calls within it."""

    @property
    def participant(self) -> str:
        """The participant's id; empty until `identify` succeeds."""
        return self.caller.participant if self.caller else ""

    @property
    def is_person(self) -> bool:
        """Whether the participant is a person."""
        return self.caller is not None and self.caller.kind == "human"

    # Frames in ----------------------------------------------------------------------------

    def receive(self, frame: bytes) -> None:
        """Process a frame from the peer."""
        early = self.state is not _READY
        if early and not self._accepts_early(frame):
            return
        try:
            read = self._hub.decoder.decode(frame)
        except FrameError as error:
            self._reject(error, error.ref)
            return
        if early:
            self._take_early(read)
        elif read.op == "call":
            self._hub.call(self, read)
        elif read.op == "ack":
            self._acknowledge(read.seq)
        elif read.op == "signal":
            self._hub.signal(self, read)
        else:
            self._reject(OperationError(*(complaint(self.state, read.op) or ())), None)

    def _accepts_early(self, frame: bytes) -> bool:
        """Whether to process a frame that comes before `ready`, when the limits are tight."""
        if self.state is _CLOSED:
            return False  # it was in flight when the hub closed
        self._strange_frames += 1
        if self._strange_frames > STRANGER_FRAMES:
            self.close(CloseCode.BAD_FRAME, f"more than {STRANGER_FRAMES} frames before `ready`")
            return False
        if len(frame) > STRANGER_BYTES:
            text = (
                f"before `ready` a frame has at most {STRANGER_BYTES} bytes, this has {len(frame)}"
            )
            self._reject(too_large(text), None)
            return False
        return True

    def _take_early(self, frame: Frame) -> None:
        """Process a frame before `ready`, where only `identify` is allowed."""
        wrong = complaint(self.state, frame.op)
        if wrong is not None:
            self._reject(OperationError(*wrong), getattr(frame, "ref", None))
        elif isinstance(frame, Identify):
            self.state = SessionState.IDENTIFYING
            self._hub.identify(self, frame)

    def _reject(self, error: OperationError, ref: str | None) -> None:
        """Answer an invalid frame. A peer that keeps sending more bad frames than good ones is
        disconnected."""
        self._hub.metrics.bad_frames += 1
        self.error(error, ref)
        self.bad_frames += 1
        if self.bad_frames >= self._hub.limits.bad_frames:
            self.close(CloseCode.BAD_FRAME, "too many bad frames")

    def _acknowledge(self, seq: int) -> None:
        if seq > self.last:
            text = f"seq: {seq} was not sent on this stream, its last event is {self.last}"
            self._reject(bad_request(text), None)
            return
        unacked = self._unacked
        if self.bad_frames and unacked and unacked[0] <= seq:
            self.bad_frames -= 1
        while unacked and unacked[0] <= seq:
            unacked.popleft()
        if not self.observe:
            self._hub.acknowledged(self, seq, wakes=self._has_wakes(seq))
        if not self.live and len(unacked) <= self._hub.limits.unacknowledged // 2:
            self._catch_up()

    def _has_wakes(self, upto: int) -> bool:
        if not 0 < self._next_wake <= upto:
            return False
        self._next_wake = upto + 1 if self._last_wake > upto else 0
        return True

    async def read(self, answering: Coroutine[object, object, None]) -> None:
        """Answer a call that reads, once a slot is free and if the peer is still connected."""
        if self._reads is None:  # most sessions never need one
            self._reads = asyncio.Semaphore(MAX_READS)
        try:
            async with self._reads:
                if self.state is _READY:
                    await answering
        finally:
            answering.close()

    def count_good_call(self) -> None:
        """Let a call within the limit offset one over it, and a bad frame."""
        if self.calls_over_rate:
            self.calls_over_rate -= 1
        if self.bad_frames:
            self.bad_frames -= 1

    def count_over_rate(self) -> None:
        """Count a call over the limit. A peer that ignores the errors and sends very many is
        disconnected."""
        self.calls_over_rate += 1
        if self.calls_over_rate > 10 * self._hub.limits.burst:
            self.close(CloseCode.RATE, "too many calls over the limit")

    def lost(self) -> None:
        """The peer is gone."""
        if self.state is not _CLOSED:
            self.state = _CLOSED
            self._hub.detach(self)

    # Frames out ---------------------------------------------------------------------------

    def write(self, frame: bytes) -> None:
        self._outlet.write(frame)

    def result(self, ref: str, value: bytes | PlainSendResult, *, duplicate: bool = False) -> None:
        self._outlet.write(encode_result(ref, value, duplicate=duplicate))

    def error(self, error: OperationError, ref: str | None) -> None:
        self._outlet.write(encode_error(error, ref))

    def send_ephemeral(self, frame: bytes) -> None:
        """Write an ephemeral frame, or drop it if the peer is behind."""
        if self._outlet.unsent() < self._hub.limits.unsent // 16:
            self._outlet.write(frame)

    def close(self, code: CloseCode, reason: str) -> None:
        """Close the connection after everything already written."""
        if self.state is not _CLOSED:
            self.state = _CLOSED
            self._hub.detach(self)
            self._outlet.close(code, reason)

    # Answers to writes (the log's `Waiter`) ------------------------------------------------

    def sent(self, ref: str, entry: Entry, *, duplicate: bool = False) -> None:
        if entry.draft.sender_kind == "human":
            self._own_seqs.append(entry.seq)
        self._outlet.write(encode_result(ref, self._hub.send_result(entry), duplicate=duplicate))

    def repeated(self, ref: str, value: bytes) -> None:
        self.result(ref, value, duplicate=True)

    def failed(self, ref: str, error: Exception) -> None:
        if isinstance(error, LogDamaged):
            error = OperationError(ErrorCode.LOG_DAMAGED, str(error), details={"seq": error.seq})
        elif isinstance(error, StoreUnavailable):
            error = OperationError(ErrorCode.STORE_UNAVAILABLE, str(error), temporary=True)
        if not isinstance(error, OperationError):
            error = OperationError(ErrorCode.INTERNAL, "the hub failed")
        self.error(error, ref or None)

    # The stream ---------------------------------------------------------------------------

    def start(self, caller: Caller, cursor: int, *, behind: bool) -> None:
        """Begin the stream after `cursor`. `ready` has been written and announced `behind`."""
        self.caller = caller
        self.state = _READY
        self._outlet.identified()
        self.last = self._read = cursor
        self._behind = behind
        self._catch_up()

    def offer(self, event: SharedEvent, wake: bytes) -> None:
        """Push a committed event, or stop being live and read it from the log later."""
        if not self.live:
            return
        self._unchecked += len(event.body)
        if len(self._unacked) >= self._hub.limits.unacknowledged or (
            self._unchecked > CHECK_EVERY and self._is_full()
        ):
            self.live = False
            self._read = self.last
            return
        self._write_event(event, wake)

    def _write_event(self, event: SharedEvent, wake: bytes) -> None:
        self._outlet.write(event.frame(self.last, wake))
        self._hub.metrics.deliveries += 1
        self.last = seq = event.seq
        if seq > self.received:
            self._unacked.append(seq)
        if wake:
            self._last_wake = seq
            self._next_wake = self._next_wake or seq

    def _is_full(self) -> bool:
        """Whether so much is unsent that events must wait in the log."""
        self._unchecked = 0
        return self._outlet.unsent() > self._hub.limits.unsent // 2

    def drained(self) -> None:
        """The peer has read everything written: resume the stream if it was waiting for that."""
        if self.state is _READY and not self.live:
            self._catch_up()

    def _catch_up(self) -> None:
        if self._read >= self._hub.head:
            self._go_live()
        elif not self._catching_up:
            self._catching_up = True
            self._hub.spawn(self._read_forward())

    def _go_live(self) -> None:
        """The end of the log is reached: push commits from here on."""
        self.live = True
        if self._behind:
            self._behind = False
            signal = Signal(type="caught_up", sender="hub", data={"seq": self._hub.head})
            self._outlet.write(signal.encoded())

    async def _read_forward(self) -> None:
        """Write pages of the log until the window is full or the log ends."""
        try:
            while self.state is _READY and not self.live:
                room = min(self._hub.limits.unacknowledged - len(self._unacked), PAGE)
                if room <= 0 or self._is_full():
                    return
                page, upto, damage = await self._read_page(room)
                if self.state is not _READY:
                    return
                if not self._write_page(page):
                    self._read = max(self._read, self.last)
                elif len(page) == room:
                    self._read = page[-1].seq
                else:
                    self._read = upto
                    if damage:
                        self.failed("", damage)
                if self._read >= self._hub.head:
                    self._go_live()
        except StoreUnavailable:
            self.close(CloseCode.INTERNAL, "the store cannot be read; reconnect")
        finally:
            self._catching_up = False

    async def _read_page(self, room: int) -> tuple[Sequence[StoredEvent], int, LogDamaged | None]:
        """At most `room` events, the position to continue from if there are fewer, and any damage
        before that. Damage is skipped, or the reader would return to it forever."""
        after, head = self._read, self._hub.head
        try:
            return await self._hub.read_events(self, after, head, room), head, None
        except LogDamaged as damage:
            place = max(damage.seq, after + 1)
            page = await self._hub.read_events(self, after, place - 1, room)
            return page, place, damage

    def _is_own(self, event: StoredEvent) -> bool:
        """Whether an agent sent the message itself, with no person speaking for it."""
        if event.sender != self.participant or self.is_person:
            return False
        return b'"sent_by"' not in event.body or "sent_by" not in json.loads(event.body)

    def _write_page(self, page: Sequence[StoredEvent]) -> bool:
        """Write events; False if the peer's buffer fills up before the end of the page."""
        for event in page:
            if event.seq in self._own_seqs or self._is_own(event):
                continue
            if self._unchecked > CHECK_EVERY and self._is_full():
                return False
            wake = b""
            if event.reply is not None and event.turn is not None:
                wake = encode_wake(event.reason or "", event.reply, event.turn)
            self._unchecked += len(event.body)
            self._write_event(SharedEvent(event.seq, event.tseq, event.body), wake)
        return True
