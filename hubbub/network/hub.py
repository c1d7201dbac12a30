"""The hub: routes, stores and pushes messages between sessions.

    client frame -> connection -> Session.receive -> Calls.take(operation)
       a message: Speaker.draft -> Writes.speak: mods -> lineage -> wakes -> Log.append
          -> (group commit) -> result to the sender -> Fanout.push to every recipient's session

The hub knows no sockets: a server or the in-process transport attaches outlets to it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from typing import Any, Self

from hubbub.clock import Clock, SteadyClock, SystemClock
from hubbub.config.models import NetworkFile
from hubbub.errors import OperationError, StoreUnavailable
from hubbub.logs import get_logger
from hubbub.mods.api import Mod
from hubbub.mods.operation import Operation
from hubbub.network.backplane import Backplane, LocalBackplane
from hubbub.network.caller import Caller
from hubbub.network.calls import Calls
from hubbub.network.control.control import Control
from hubbub.network.control.notices import Notice
from hubbub.network.cursors import Cursors
from hubbub.network.fanout import Fanout
from hubbub.network.joining import Joining
from hubbub.network.limits import TokenBucket
from hubbub.network.log import Entry, Log
from hubbub.network.metrics import HubMetrics
from hubbub.network.mods.room import Mods
from hubbub.network.news import AHEAD_OF_MESSAGES, HUBS_SIGNALS, News
from hubbub.network.operations import CORE_OPERATIONS
from hubbub.network.operations.turns import tell_again
from hubbub.network.people.approvals import Approvals
from hubbub.network.people.down import DownAgents
from hubbub.network.people.ending import Ending
from hubbub.network.people.latching import Latching
from hubbub.network.people.speaking_for import SpeakingFor
from hubbub.network.ports import Store
from hubbub.network.queries import OpenWakes
from hubbub.network.queues import Queues
from hubbub.network.readiness import Readiness
from hubbub.network.records import Record
from hubbub.network.requests.requests import Requests
from hubbub.network.session import Session
from hubbub.network.speaking import Speaker
from hubbub.network.state import NetworkState
from hubbub.network.stored import StoredEvent, StoreState
from hubbub.network.trials import Trials
from hubbub.network.wakes import KEPT_BACK
from hubbub.network.writes import Writes
from hubbub.protocol import thread_ids
from hubbub.protocol.codec import Decoder, encode_send_result
from hubbub.protocol.codes import CloseCode, ErrorCode
from hubbub.protocol.frames import Hello, Identify, LimitsInfo, Reconnect, Signal
from hubbub.protocol.session import SessionState
from hubbub.protocol.wire import Outlet

__all__ = ["Hub"]

log = get_logger(__name__)

SIGNAL = 0.2
"""What a signal costs of the rate limit: four streamed texts shall leave room for calls."""


class Hub:
    """One network. Use it as an async context manager: it runs from enter to exit.

    `file` is the network's config (its models and agents' prompts do not concern the hub), `store`
    is opened and closed by the hub. Entering raises what `Store.open` raises.
    """

    def __init__(
        self,
        file: NetworkFile,
        store: Store,
        *,
        mods: Sequence[Mod] = (),
        backplane: Backplane | None = None,
        clock: Clock | None = None,
    ):
        self.file, self.config, self.limits = file, file.network, file.network.limits
        self.store, self.clock = store, clock or SystemClock()
        self.steady = SteadyClock(self.clock)
        """For what lasts a while: deadlines, expiries. `clock` is for what bears a date."""
        self.backplane = backplane or LocalBackplane()
        self.metrics = HubMetrics()
        self.trials = Trials()
        self.mods = Mods(self, mods)
        self.operations = _all_operations(self.mods.operations())
        self.decoder = Decoder(
            {op.name: op.input for op in self.operations.values()},
            max_bytes=self.limits.frame,
            max_depth=self.limits.json_depth,
        )
        self.draining = False
        self._refusal = ""
        """Why the store refused the last batch; empty since it has written one."""
        self.call = Calls(self).take
        """Runs what a session asks for, and answers it."""
        self.silent: Callable[[str], object] = lambda participant: None
        """Is told whose connection was closed because it has answered no ping."""
        self._buckets: dict[str, TokenBucket] = {}
        self._sessions: set[Session] = set()
        self._replacing = ""
        """The agent whose older connection gives way to a newer one now."""
        self._stack = AsyncExitStack()

    @property
    def problem(self) -> str:
        """Why nothing can be written at present, in a sentence; empty: it can."""
        return self.store.problem() or self._refusal

    # Life ---------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        stored = await self.store.open()
        self._stack.push_async_callback(self.store.close)
        try:
            await self._start(self._restored(stored), stored)
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    def _restored(self, stored: StoreState) -> NetworkState:
        try:
            return NetworkState(stored, self.steady)
        except (ValueError, TypeError, KeyError) as error:
            raise StoreUnavailable(
                f"{self.config.store} has a record that cannot be read ({error}): put a backup in "
                "its place (`hubbub restore`), or name another file as the store"
            ) from error

    async def _start(self, state: NetworkState, stored: StoreState) -> None:
        self.state = state
        self.queues = Queues(state.agents)
        self.log = Log(self.store, state.threads, self.clock, self)
        self.log.head = stored.head
        self.readiness = Readiness(self.log, self.clock)
        self.metrics.waiting = lambda: self.log.waiting
        self.speaker = Speaker(state, self.config)
        self.control = Control(
            self.file, self.store, self.log, state, self.queues, self.clock, self._post
        )
        await self.control.restore()
        self.requests = Requests(self, stored.requests)
        self.writes = Writes(
            self.store,
            self.log,
            state,
            self.speaker,
            self.mods.pipeline,
            self.metrics,
            self.control,
            self.requests,
            self.spawn,
        )
        self.fanout = Fanout(state, self.metrics)
        self.backplane.subscribe(self.fanout.push)
        self.news = News(state, self.fanout, self.clock)
        self.cursors = Cursors(state, self.log, self.news.delivered)
        self.joining = Joining(self, self.file, self.store, self.writes)
        self._put_in_charge(stored)
        self._tasks = await self._stack.enter_async_context(asyncio.TaskGroup())
        self._writer = self._tasks.create_task(self.log.run(), name="log")
        try:
            await self.mods.admit()
            await self.joining.declare()
            await self.ending.start()
            await self.mods.start()
        except BaseException:
            await self.mods.stop()
            self.log.stop()
            raise
        self.speaking_for.begin()
        self.approvals.begin()
        self.requests.begin()
        self.spawn(self._restore_queues(tuple(state.agents), stored.head))
        self.spawn(tell_again(self))

    def _put_in_charge(self, stored: StoreState) -> None:
        """What people hold of the agents, as the store has it."""
        self.ending, self.latching = Ending(self), Latching(self)
        self.speaking_for = SpeakingFor(self)
        self.approvals = Approvals(self, stored.approvals)
        for part in (self.speaking_for, self.approvals, self.requests):
            self._stack.callback(part.stop)
        self.down = DownAgents(self)
        self.ending.heard += [self.control.turns.heard, self.approvals.heard, self.requests.heard]

    async def __aexit__(self, *exc: object) -> None:
        try:
            await self.drain()
        finally:
            self.log.stop()
            await self._stack.aclose()

    async def drain(self, after_s: float = 1.0) -> None:
        """Take no more calls, finish what was taken, and send everybody away to come back."""
        self.draining = True
        frame = Reconnect(after_s=after_s).model_dump_json().encode()
        for session in list(self._sessions):
            session.write(frame)
        self.cursors.flush()
        self.control.flush()
        if not self._writer.done():
            await self.log.settle()
        await self.mods.stop()
        self.news.stop()
        self.speaking_for.stop()
        self.approvals.stop()
        self.requests.stop()
        self.trials.stop()
        for session in list(self._sessions):
            session.close(CloseCode.DRAIN, "the hub is stopping")

    async def _restore_queues(self, agents: Sequence[str], head: int) -> None:
        """Learn what waits at agents since before the start; beside all else: it may be much."""
        for agent in agents:
            if not self.draining:
                self.queues.restore(agent, await self.store.read(OpenWakes(agent, head)))

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something in the hub's task group."""
        self._tasks.create_task(_guarded(work))

    # Sessions -----------------------------------------------------------------------------

    def attach(self, outlet: Outlet, address: str = "") -> Session:
        """A new connection, of a peer at `address`: greet it. What it sends goes to the session."""
        session = Session(self, outlet, self.clock.monotonic(), address)
        self._sessions.add(session)
        limits = self.limits
        hello = Hello(
            network=self.config.name,
            epoch=self.state.epoch,
            run=self.state.run,
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
        session.write(hello.model_dump_json().encode())
        return session

    def sessions(self) -> Sequence[Session]:
        """All open sessions, identified or not."""
        return list(self._sessions)

    def identify(self, session: Session, frame: Identify) -> None:
        self.spawn(self.joining.join(session, frame))

    def welcome(
        self, session: Session, caller: Caller, cursor: int, ready: bytes, *, behind: bool
    ) -> None:
        """The session has joined: from here on it is pushed to."""
        if session.state is SessionState.CLOSED:
            return
        if caller.kind == "agent":
            self._replacing = caller.participant
            for older in list(self.fanout.of(caller.participant)):
                older.close(CloseCode.REPLACED, "the agent has connected again")
            self._replacing = ""
        session.write(ready)
        session.start(caller, cursor, behind=behind)
        self.fanout.add(session)
        self.metrics.sessions = len(self.fanout)
        self.news.joined(session)
        if not session.observe:
            self.mods.joined(caller.participant)
        if caller.kind == "agent":
            self.down.joined(caller.participant)
            self.ending.remind(caller.participant)
        self.approvals.joined(session)

    def detach(self, session: Session) -> None:
        """The session is over, whoever ended it."""
        self._sessions.discard(session)
        if self.fanout.discard(session):
            self.metrics.sessions = len(self.fanout)
            self.trials.left(session)
            self.news.left(session)
            if not (session.observe or self.fanout.of(session.participant)):
                if session.participant != self._replacing:
                    self.mods.left(session.participant)
                self.control.turns.left(session.participant)
                self.requests.left(session.participant)

    def acknowledged(self, session: Session, seq: int, *, wakes: bool) -> None:
        """The session's participant has everything up to `seq`; `wakes`: among it are wakes."""
        self.cursors.move(session.participant, seq, settles_wakes=not session.turns)
        if wakes and session.turns:
            # With the turn that begins: else it would begin once more if hub and agent died now.
            self.cursors.flush()

    def bucket(self, participant: str) -> TokenBucket:
        """What the participant may ask, on all its sockets together."""
        found = self._buckets.get(participant)
        if found is None:
            rate, burst = self.limits.calls_per_second, self.limits.burst
            found = TokenBucket(rate, burst, self.clock.monotonic())
            self._buckets[participant] = found
        return found

    async def read_events(
        self, session: Session, after: int, upto: int, limit: int
    ) -> Sequence[StoredEvent]:
        """The next events of a session that is behind."""
        if session.observe:
            return await self.store.log(after, upto, limit)
        kind = session.caller.kind if session.caller is not None else "service"
        # What a person has said for an agent is among the agent's own.
        own = kind in ("human", "agent")
        page = await self.store.events(session.participant, after, upto, limit, own)
        return [await self.ending.without_ended_wake(session.participant, event) for event in page]

    async def revoke(self, participant: str) -> None:
        """Close the participant's sockets: its token is no longer valid."""
        self.joining.revoked(participant)
        for session in list(self.fanout.of(participant)):
            session.close(CloseCode.REVOKED, "the token was revoked")

    # Results ------------------------------------------------------------------------------

    def send_result(self, entry: Entry) -> bytes:
        """What the sender of a committed entry is told, as JSON."""
        draft, online = entry.draft, self.state.presence.online
        named = draft.recipients if not draft.mentions else {*draft.recipients, *draft.mentions}
        present = [p for p in named if p in online]
        absent = [p for p in named if p not in online] if len(present) < len(named) else ()
        queued: dict[str, int] = {}
        not_woken: dict[str, str] = {}
        for participant, reason, reply in entry.decisions:
            if reply is not None:
                parked = self.approvals.parked(participant)
                queued[participant] = self.queues.depth(participant, parked)
            elif reason in KEPT_BACK:
                not_woken[participant] = reason
        return encode_send_result(
            entry.seq,
            entry.tseq,
            entry.thread.id,
            entry.body,
            present,
            absent,
            draft.unresolved,
            queued,
            not_woken,
            draft.amends,
            draft.notes,
        )

    # The log's listener -------------------------------------------------------------------

    def request_kept(self, entry: Entry) -> Sequence[Record]:
        return self.requests.records(entry)

    def recorded(self, records: Sequence[Record]) -> None:
        self.queues.recorded(records)
        self.mods.recorded(records)

    def committed(self, entries: Sequence[Entry], seconds: float) -> None:
        if self._refusal:
            self._refusal = ""
            log.info("the store writes again")
        self.metrics.committed(seconds)
        self.metrics.messages += len(entries)
        woken, halted = self.queues.woken, self.state.halts.any
        self.control.committed(entries)
        for entry in entries:
            if halted:
                self.ending.late(entry)
            for participant, _, reply in entry.decisions:
                if reply is not None:
                    woken(participant, entry.seq)
            self.writes.committed(entry)
            if entry.draft.sender_kind == "human" and entry.draft.sent_at is None:
                self.cursors.spoke(entry.draft.sender_id, entry.thread, entry.tseq)
        self.backplane.announce(entries)
        if self.state.takeovers:
            for entry in entries:
                self.speaking_for.overhear(entry)
        if self.state.down:
            for entry in entries:
                self.down.committed(entry)

    def refused(self, entries: Sequence[Entry], error: Exception) -> None:
        if not isinstance(error, StoreUnavailable):
            log.error("the store refused a batch", exc_info=error)
        elif str(error) != self._refusal:
            log.error("the store refuses to write", reason=str(error))
        self._refusal = str(error)
        self.readiness.refused()
        self.metrics.refused += len(entries)
        for entry in entries:
            self.writes.forget(entry)

    def repeated(self, entry: Entry) -> None:
        self.writes.repeated(entry)

    def _post(self, notice: Notice) -> None:
        """Say what stands in the way of a wake, or of a question to a model."""
        self.writes.notice(notice.thread_id, notice.text, notice.details, notice.once, to=notice.to)

    # Signals ------------------------------------------------------------------------------

    def relay_signal(self, session: Session, frame: Signal) -> None:
        """Pass an ephemeral frame on to those who read its thread, or to everybody."""
        caller = session.caller
        if caller is None or self.draining or session.observe:
            return
        if caller.bucket.take(self.clock.monotonic(), SIGNAL):
            return
        if frame.type in HUBS_SIGNALS:
            text = f"type: {frame.type} is for the hub to say"
            session.error(OperationError(ErrorCode.BAD_REQUEST, text), None)
            return
        ahead = frame.type in AHEAD_OF_MESSAGES
        if ahead and self.mods.pipeline.judges:
            return  # no mod has seen the words yet
        if frame.thread_id is None:
            if not (ahead and self.state.halts.any):
                self.news.relay(session, frame, None)
            return
        canonical = thread_ids.canonical(frame.thread_id, caller.participant)
        thread = self.state.threads.get(canonical or "")
        if thread is None or (ahead and self.state.halts.of(caller.participant, thread.id)):
            return  # who is stopped says nothing, in whatever way
        if self.state.may_read(thread, caller.participant):
            self.news.relay(session, frame, thread)


def _all_operations(of_mods: Sequence[Operation]) -> dict[str, Operation]:
    found: dict[str, Operation] = {}
    for operation in (*CORE_OPERATIONS, *of_mods):
        if operation.name in found:
            raise ValueError(f"the operation {operation.name} is declared twice")
        found[operation.name] = operation
    return found


async def _guarded(work: Coroutine[Any, Any, None]) -> None:
    """A task that fails is reported and must not take the hub down with it."""
    try:
        await work
    except Exception:
        log.exception("task failed")
