"""The gateway: the sessions of a hub, from their first frame to their last.

    outlet -> attach -> Session -> identify -> joining -> ready -> the stream
                                -> call     -> calls   -> a service
                                -> signal   -> connected participants

It gets the services it needs as arguments; `hubbub.network.hub` has the order of their hooks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from hubbub.network.admission import Admission
from hubbub.network.caller import Caller
from hubbub.network.calls import CallDispatcher
from hubbub.network.kernel import Kernel
from hubbub.network.log import Change, Entry, Log
from hubbub.network.mods.runtime import Mods
from hubbub.network.records import CursorMoved, Record, WakesSettled
from hubbub.network.service import Registry, Service
from hubbub.network.services.turns.ending import Ending
from hubbub.network.session import Session
from hubbub.network.snapshot import Snapshots
from hubbub.network.state import NetworkState
from hubbub.network.stored import StoredEvent, StoredMark
from hubbub.network.threads import Thread
from hubbub.protocol.codec import Decoder
from hubbub.protocol.codes import CloseCode
from hubbub.protocol.frames import Hello, Identify, LimitsInfo, Reconnect
from hubbub.protocol.messages import Kind, TranscriptMark
from hubbub.protocol.wire import Outlet, SessionState

__all__ = ["Cursors", "Gateway"]

S = TypeVar("S", bound=Session)

# Durable cursors: the participants' acknowledgements, and the read markers that people advance by
# posting; written along with other commits.


WRITE_AFTER_S = 1.0
"""Seconds that acknowledgements are collected; losing some only means that events are sent
again."""


class Cursors:
    """Collects acknowledgements and writes them periodically."""

    def __init__(self, state: NetworkState, log: Log, written: Callable[[Mapping[str, int]], None]):
        """`written` is called with moved cursors once they are durable."""
        self._state, self._log, self._written = state, log, written
        self._moved: dict[str, int] = {}
        self._settled: dict[str, int] = {}
        self._spoke: set[tuple[str, int]] = set()
        """Participant and thread number of read markers advanced by posting."""
        self._timer: asyncio.TimerHandle | None = None

    def move(self, participant: str, seq: int, *, settles_wakes: bool) -> None:
        """The participant has everything up to `seq`.

        `settles_wakes`: it does not record turns, so a received wake counts as handled.
        """
        state = self._state.get(participant)
        if state is None or (seq <= state.cursor and not settles_wakes):
            return
        state.cursor = max(state.cursor, seq)
        self._moved[participant] = state.cursor
        if settles_wakes:
            self._settled[participant] = max(seq, self._settled.get(participant, 0))
        self._write_later()

    def _spoke_at(self, participant: str, thread: Thread, tseq: int) -> None:
        """Advance the read marker of a participant that posted the message at `tseq`, if it had
        read everything before.

        Losing this only means that own messages count as unread until the thread is opened.
        """
        marks = self._state.marks
        if marks.is_announced(participant, thread.no):
            return  # the marker in flight takes precedence
        if marks.get(participant, thread.no) == tseq - 1:
            marks.put(participant, thread.no, tseq)
            self._spoke.add((participant, thread.no))
            self._write_later()

    def committed(self, entries: Sequence[Entry]) -> None:
        """Mark people's own committed messages as read."""
        for entry in entries:
            draft = entry.draft
            if draft.sender_kind == "human" and not isinstance(draft.purpose, TranscriptMark):
                self._spoke_at(draft.sender_id, entry.thread, entry.tseq)

    def _write_later(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(WRITE_AFTER_S, self.flush)

    def flush(self) -> None:
        """Write everything collected to the log."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._moved and not self._spoke:
            return
        moved, self._moved = self._moved, {}
        settled, self._settled = self._settled, {}
        spoke, self._spoke = self._spoke, set()

        def records(head: int) -> Sequence[Record]:
            written: list[Record] = [CursorMoved(name, seq) for name, seq in moved.items()]
            written += [WakesSettled(name, seq) for name, seq in settled.items()]
            marks = self._state.marks
            written += [StoredMark(name, no, marks.get(name, no)) for name, no in sorted(spoke)]
            return written

        def done(error: Exception | None) -> None:
            if error is not None:
                # The next acknowledgement writes it again.
                self._moved = {**moved, **self._moved}
                self._settled = {**settled, **self._settled}
                self._spoke |= spoke
            else:
                self._written(moved)

        self._log.change(Change(records, done))


class Gateway:
    """The `SessionHost` of all sessions of one hub."""

    def __init__(
        self,
        kernel: Kernel,
        registry: Registry,
        mods: Mods,
        ending: Ending,
        services: Sequence[Service],
    ):
        """`services` follow joins and departures, in order."""
        self._kernel, self._ending, self._services = kernel, ending, services
        self.limits, self.metrics, self.spawn = kernel.limits, kernel.metrics, kernel.spawn
        self.decoder = Decoder(
            {op.name: op.input for op in registry.values()},
            max_bytes=self.limits.frame,
            max_depth=self.limits.json_depth,
        )
        self._calls = CallDispatcher(kernel, registry)
        self.call = self._calls.take
        self.signal, self.send_result = kernel.notifications.relay, kernel.fanout.send_result
        self.snapshots = Snapshots(kernel, registry)
        self.admission = Admission(kernel, mods, self.snapshots, self._welcome)
        self.cursors = Cursors(kernel.state, kernel.log, kernel.notifications.delivered)
        self._sessions: dict[Session, None] = {}  # in order of arrival
        self._closed = False
        self._replacing = ""
        """The agent whose older connection is being replaced."""
        self.silent: Callable[[str], object] = lambda participant: None
        """Called with the participant of a connection closed for not answering a ping."""
        self.leaving: Callable[[], object] = lambda: None
        """Called when the hub stops accepting calls."""

    @property
    def head(self) -> int:
        return self._kernel.log.head

    def attach(self, outlet: Outlet, address: str = "") -> Session:
        """Greet the peer of a new connection. Returns the session for its frames."""
        return self.begin(Session(self, outlet, self._kernel.clock.monotonic(), address))

    def begin(self, session: S) -> S:
        """Register a session and greet its peer."""
        self._sessions[session] = None
        session.write(self.hello().model_dump_json().encode())
        if self._closed:
            session.close(CloseCode.DRAIN, "the hub is stopping")
        return session

    def hello(self) -> Hello:
        """The greeting for a new peer."""
        limits, state = self.limits, self._kernel.state
        return Hello(
            network=self._kernel.config.name,
            epoch=state.epoch,
            run=state.run,
            heartbeat_s=limits.heartbeat,
            limits=LimitsInfo(
                frame_bytes=limits.frame,
                json_depth=limits.json_depth,
                text_bytes=limits.text,
                calls_per_second=limits.calls_per_second,
                burst=limits.burst,
                channels=limits.channels,
                thread_depth=limits.thread_depth,
                unacknowledged=limits.unacknowledged,
            ),
        )

    def sessions(self) -> Sequence[Session]:
        """All open sessions, identified or not."""
        return list(self._sessions)

    def say_goodbye(self, after_s: float) -> None:
        """Accept no more calls, and ask all clients to reconnect after `after_s`."""
        self.call = self._calls.refuse_draining
        self.leaving()
        frame = Reconnect(after_s=after_s).model_dump_json().encode()
        for session in self.sessions():
            session.write(frame)

    def close(self) -> None:
        """Close all sessions, and any new ones."""
        self._closed = True
        for session in self.sessions():
            session.close(CloseCode.DRAIN, "the hub is stopping")

    # Joining and leaving ----------------------------------------------------------------------

    def identify(self, session: Session, frame: Identify) -> None:
        self.spawn(self.admission.join(session, frame))

    def _welcome(
        self, session: Session, caller: Caller, cursor: int, ready: bytes, behind: bool
    ) -> None:
        if session.state is SessionState.CLOSED:
            return
        fanout = self._kernel.fanout
        if caller.kind == "agent":
            if session.resumes and any(
                other.opened > session.opened for other in fanout.of(caller.participant)
            ):
                session.close(CloseCode.REPLACED, "the agent has connected again")
                return
            self._replacing = caller.participant
            for older in list(fanout.of(caller.participant)):
                older.close(CloseCode.REPLACED, "the agent has connected again")
            self._replacing = ""
        session.write(ready)
        session.start(caller, cursor, behind=behind)
        fanout.add(session)
        self.metrics.sessions = len(fanout)
        self._kernel.notifications.joined(session)
        for service in self._services:
            service.joined(session)
        if caller.kind == "agent":
            self._ending.resend_stops(caller.participant)

    def detach(self, session: Session) -> None:
        self._sessions.pop(session, None)
        fanout = self._kernel.fanout
        if fanout.discard(session):
            self.metrics.sessions = len(fanout)
            self._kernel.notifications.left(session)
            for service in self._services:
                service.left(session)
            if not (session.observe or fanout.of(session.participant)):
                replaced = session.participant == self._replacing
                for service in self._services:
                    service.absent(session.participant, replaced=replaced)

    # The stream -------------------------------------------------------------------------------

    def acknowledged(self, session: Session, seq: int, *, wakes: bool) -> None:
        self.cursors.move(session.participant, seq, settles_wakes=not session.turns)
        if wakes and session.turns:
            # In one commit with the turn that begins, or it would begin again if both hub and agent
            # crashed now.
            self.cursors.flush()

    async def read_events(
        self, session: Session, after: int, upto: int, limit: int
    ) -> Sequence[StoredEvent]:
        kind = session.caller.kind if session.caller is not None else "service"
        participant = None if session.observe else session.participant
        return await self.events_of(participant, kind, after, upto, limit)

    async def events_of(
        self, participant: str | None, kind: Kind, after: int, upto: int, limit: int
    ) -> Sequence[StoredEvent]:
        """The next events of a participant of this kind, or of an observer if it is None."""
        store = self._kernel.store
        if participant is None:
            return await store.log(after, upto, limit)
        # An agent's own messages include those that a person sent on its behalf.
        own = kind in ("human", "agent")
        page = await store.events(participant, after, upto, limit, own)
        return [await self._ending.without_ended_wake(participant, event) for event in page]
