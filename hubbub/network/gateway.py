"""The gateway: the sessions of a hub, from their first frame to their last.

    outlet -> attach -> Session -> identify -> joining -> ready -> the stream
                                -> call     -> calls   -> a service
                                -> signal   -> those who are connected

What it needs of the services it is given: the order of the hooks stands in `hubbub.network.hub`.
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

# Durable cursors: what each participant has acknowledged, and what people have read by saying
# something themselves; written along with other commits.


WRITE_AFTER_S = 1.0
"""Acknowledgements gather this long: losing some means only that events are sent again."""


class Cursors:
    """Remembers acknowledgements and writes them now and then."""

    def __init__(self, state: NetworkState, log: Log, written: Callable[[Mapping[str, int]], None]):
        """`written` is called with the cursors that have moved, when they are durable."""
        self._state, self._log, self._written = state, log, written
        self._moved: dict[str, int] = {}
        self._settled: dict[str, int] = {}
        self._spoke: set[tuple[str, int]] = set()
        """Whose marks have moved by their own words, and in which threads."""
        self._timer: asyncio.TimerHandle | None = None

    def move(self, participant: str, seq: int, *, settles_wakes: bool) -> None:
        """The participant has everything up to `seq`.

        `settles_wakes`: it does not record turns, so that having a wake is having dealt with it.
        """
        known = self._state.get(participant)
        if known is None or (seq <= known.cursor and not settles_wakes):
            return
        known.cursor = max(known.cursor, seq)
        self._moved[participant] = known.cursor
        if settles_wakes:
            self._settled[participant] = max(seq, self._settled.get(participant, 0))
        self._write_later()

    def _spoke_at(self, participant: str, thread: Thread, tseq: int) -> None:
        """The participant has written the message at `tseq`: who had read all before has read it.

        Losing this means only that own words count as unread until the thread is looked at.
        """
        marks = self._state.marks
        if marks.is_announced(participant, thread.no):
            return  # the mark that is on its way counts
        if marks.get(participant, thread.no) == tseq - 1:
            marks.put(participant, thread.no, tseq)
            self._spoke.add((participant, thread.no))
            self._write_later()

    def committed(self, entries: Sequence[Entry]) -> None:
        """These entries are durable: people have read what they have said."""
        for entry in entries:
            draft = entry.draft
            if draft.sender_kind == "human" and not isinstance(draft.purpose, TranscriptMark):
                self._spoke_at(draft.sender_id, entry.thread, entry.tseq)

    def _write_later(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(WRITE_AFTER_S, self.flush)

    def flush(self) -> None:
        """Hand what has gathered to the log."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._moved and not self._spoke:
            return
        moved, self._moved = self._moved, {}
        settled, self._settled = self._settled, {}
        spoke, self._spoke = self._spoke, set()

        def records(head: int) -> Sequence[Record]:
            made: list[Record] = [CursorMoved(name, seq) for name, seq in moved.items()]
            made += [WakesSettled(name, seq) for name, seq in settled.items()]
            marks = self._state.marks
            made += [StoredMark(name, no, marks.get(name, no)) for name, no in sorted(spoke)]
            return made

        def done(error: Exception | None) -> None:
            if error is not None:
                # Kept in memory: the next acknowledgement writes it again.
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
        """`services` hear who comes and goes, in this order."""
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
        self._sessions: dict[Session, None] = {}  # in the order in which they came
        self._closed = False
        self._replacing = ""
        """The agent whose older connection gives way to a newer one now."""
        self.silent: Callable[[str], object] = lambda participant: None
        """Is told whose connection was closed because it has answered no ping."""
        self.leaving: Callable[[], object] = lambda: None
        """Is told when no more calls are taken."""

    @property
    def head(self) -> int:
        return self._kernel.log.head

    def attach(self, outlet: Outlet, address: str = "") -> Session:
        """A new connection, of a peer at `address`: greet it. What it sends goes to the session."""
        return self.begin(Session(self, outlet, self._kernel.clock.monotonic(), address))

    def begin(self, session: S) -> S:
        """A session of a new connection: greet its peer."""
        self._sessions[session] = None
        session.write(self.hello().model_dump_json().encode())
        if self._closed:
            session.close(CloseCode.DRAIN, "the hub is stopping")
        return session

    def hello(self) -> Hello:
        """What a peer is greeted with."""
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
        """Take no more calls, and tell everybody to come back after so many seconds."""
        self.call = self._calls.turn_away
        self.leaving()
        frame = Reconnect(after_s=after_s).model_dump_json().encode()
        for session in self.sessions():
            session.write(frame)

    def close(self) -> None:
        """Close all sessions, and those that come from now on."""
        self._closed = True
        for session in self.sessions():
            session.close(CloseCode.DRAIN, "the hub is stopping")

    # Coming and going -------------------------------------------------------------------------

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
            self._ending.remind(caller.participant)

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
            # With the turn that begins: else it would begin once more if hub and agent died now.
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
        """The next events of a participant of this kind; None: those of an observer."""
        store = self._kernel.store
        if participant is None:
            return await store.log(after, upto, limit)
        # What a person has said for an agent is among the agent's own.
        own = kind in ("human", "agent")
        page = await store.events(participant, after, upto, limit, own)
        return [await self._ending.without_ended_wake(participant, event) for event in page]
