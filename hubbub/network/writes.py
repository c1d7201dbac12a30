"""The path from an operation's result to the log: mods, trace context, wakes, gates, idempotent
cids."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from msgspec import Raw
from pydantic import BaseModel, JsonValue

from hubbub.errors import LogDamaged, OperationError, StoreUnavailable
from hubbub.ids import parse_message_id
from hubbub.logs import get_logger
from hubbub.mods.operation import Commit
from hubbub.mods.pipeline import Pipeline
from hubbub.network.ancestors import Ancestors
from hubbub.network.log import CallbackWaiter, Change, Entry, Log, RowsOf, Waiter
from hubbub.network.metrics import HubMetrics
from hubbub.network.policy import Gate
from hubbub.network.ports import Store
from hubbub.network.queries import SettledCall
from hubbub.network.records import CallSettled, ModRows, Record, TurnSent
from hubbub.network.routing import Router, cause_position
from hubbub.network.state import NetworkState
from hubbub.network.stored import Settled
from hubbub.network.threads import Thread
from hubbub.network.trace_context import Ancestor
from hubbub.protocol import thread_ids
from hubbub.protocol.codec import PlainSendResult, encode_json
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Draft, Message, RequestMark, TranscriptMark
from hubbub.waiting import settle

__all__ = ["Writes"]

log = get_logger(__name__)

RETRY_S = 1.0
"""Seconds until the hub retries a write of its own that the disk refused."""
LAST_AGENT_WINDOW = 50
"""Messages of a thread that are searched for its last agent."""

Spawn = Callable[[Coroutine[Any, Any, None]], None]
"""Runs a coroutine in the hub's task group."""


class Writes:
    """Hands entries and records to the log, each at most once per (sender, cid)."""

    gates: Sequence[Gate] = ()
    """The policy: the gates that check each message, in order."""
    rows: tuple[RowsOf, ...] = ()
    """Builders of records written with every message, imported ones included."""

    def __init__(
        self,
        store: Store,
        log: Log,
        state: NetworkState,
        router: Router,
        pipeline: Pipeline,
        metrics: HubMetrics,
        spawn: Spawn,
    ):
        self._store, self._log, self._state = store, log, state
        self._router, self._pipeline, self._metrics = router, pipeline, metrics
        self._spawn = spawn
        self.causes = Ancestors(store, log, state, router)
        self._pending: dict[tuple[str, str], Entry] = {}
        self._settling: dict[tuple[str, str], asyncio.Event] = {}
        """Calls without a message whose answer is being stored, by (sender, cid)."""

    # Messages -----------------------------------------------------------------------------

    def submit(self, entry: Entry) -> Coroutine[Any, Any, None] | None:
        """Write an entry to the log; its waiter is answered after the commit, or with the error.

        Returns the remaining work if it needs the store first (for the cause or the last speaker)
        or a slow mod. Raises `OperationError` for an entry that can be refused at once.
        """
        if entry.cid is not None and self._join_pending(entry):
            return None
        draft, mods = entry.draft, self._pipeline
        refers = draft.quote is not None or draft.attachments != ()
        if (refers and mods.refers) or mods.takes_long(draft):
            return self._submit_later(entry, refers=refers and mods.refers)
        entry.draft = mods.run(draft)
        return self._judge(entry)

    async def _submit_later(self, entry: Entry, *, refers: bool) -> None:
        """Run slow mods on the draft, then submit it. `refers`: mods look up its references
        first."""
        try:
            if refers:
                entry.draft = await self._pipeline.referred(entry.draft)
            entry.draft = await self._pipeline.run_in_thread(entry.draft)
            if self._join_pending(entry):
                return
            later = self._judge(entry)
        except (OperationError, StoreUnavailable) as error:
            self._refuse(entry, error)
            return
        if later is not None:
            await later

    def _join_pending(self, entry: Entry) -> bool:
        """Whether the same write is already in flight; if so, the waiter joins it."""
        if entry.cid is None:
            return False
        key = entry.draft.sender_id, entry.cid
        first = self._pending.get(key)
        if first is None and key not in self._settling:
            return False
        if first is None or first.digest != entry.digest:
            raise _in_use(entry.cid)
        first.also = (*first.also, (entry.waiter, entry.ref))
        return True

    def _judge(self, entry: Entry) -> Coroutine[Any, Any, None] | None:
        """Check a draft that has passed the mods. Returns the remaining work, if any. Raises
        `OperationError`."""
        draft, cause, seq = entry.draft, None, None
        if draft.cause_id is not None:
            seq, entry.turn = cause_position(draft.cause_id, draft.sender_id)
            if isinstance(draft.purpose, RequestMark) and draft.purpose.ends:
                # The end of a request is caused by the request, whatever led the worker to it.
                seq = parse_message_id(draft.purpose.id) or seq
            cause = self.causes.recent(seq)
            if cause is not None and not entry.by_person and self._must_load(cause):
                cause = None
        threads, thread_id = self._state.threads, draft.thread_id
        entry.thread = threads.by_id.get(thread_id) or threads.ensure(thread_id)
        if (seq is not None and cause is None) or (
            entry.thread.is_reply and self._needs_last_agent(entry)
        ):
            return self._judge_later(entry, seq)
        self._enter(entry, cause)
        return None

    def _refuse(self, entry: Entry, error: OperationError | StoreUnavailable) -> None:
        """Fail the entry, unless it repeats a write that succeeded before."""
        if entry.cid is None or isinstance(error, StoreUnavailable) or error.temporary:
            entry.fail(error)
            return
        sender = entry.draft.sender_id
        self.answer_repeat(sender, entry.cid, entry.digest, entry.waiter, entry.ref, error)

    def _must_load(self, cause: Ancestor) -> bool:
        return any(gate.needs(cause) for gate in self.gates)

    async def _judge_later(self, entry: Entry, seq: int | None) -> None:
        draft = entry.draft
        try:
            if self._needs_last_agent(entry):
                await self._load_last_agent(entry.thread)
            cause = await self.causes.ancestor(seq) if seq is not None else None
            if seq is not None and cause is None:
                raise OperationError(
                    ErrorCode.UNKNOWN_MESSAGE, f"cause: {draft.cause_id} never reached you"
                )
            if cause is not None and not entry.by_person:
                for gate in self.gates:
                    await gate.load(cause)
            if not self._join_pending(entry):
                self._enter(entry, cause)
        except (OperationError, StoreUnavailable) as error:
            self._refuse(entry, error)

    def _enter(self, entry: Entry, cause: Ancestor | None) -> None:
        draft = entry.draft
        if draft.sender_kind == "agent" and draft.sent_by is None:
            self._check_may_speak(draft, entry.turn)
        if cause is not None and cause.untrusted and not entry.by_person:
            draft = entry.draft = draft.replace(untrusted=True)
        self._router.judge(entry, cause)
        special = draft.awaits or isinstance(draft.purpose, RequestMark)
        gates = self.gates if special or entry.wakes or entry.interaction else ()
        try:
            for gate in gates:
                if special or gate.watches:
                    gate.judge(entry)
        except BaseException:
            for passed in gates[: gates.index(gate)]:
                passed.roll_back(entry)
            raise
        if entry.turn is not None:
            entry.rows = (*entry.rows, _turn_sent)
        self._append(entry)

    def _append(self, entry: Entry) -> None:
        draft = entry.draft
        entry.ordinary = draft.purpose is None and not (entry.by_person or draft.awaits)
        entry.rows += self.rows
        if entry.cid is not None:
            self._pending[entry.draft.sender_id, entry.cid] = entry
        self._log.append(entry)

    async def restore(self, entry: Entry, interaction: str | None, hop: int) -> None:
        """Write a message of a transcript to the log unchanged: it wakes no agent, costs no budget,
        and neither opens nor ends a request. `interaction` is None if it opened its own.

        It passes the mods but no gates. Raises `OperationError`.
        """
        assert isinstance(entry.draft.purpose, TranscriptMark), "the mark has the original time"
        if self._join_pending(entry):
            return
        draft = entry.draft = await self._pipeline.run_in_thread(entry.draft)
        if self._join_pending(entry):
            return
        limit = max(hop, self._router.hop_limit(draft.sender_kind))
        entry.thread = self._state.threads.ensure(draft.thread_id)
        entry.interaction, entry.hop, entry.hop_limit = interaction, hop, limit
        entry.decisions, entry.wakes = self._router.decisions(entry), False
        self._append(entry)

    def _check_may_speak(self, draft: Draft, turn: str | None) -> None:
        """Raises `OperationError` if the agent, the thread or the agent's turn is stopped."""
        if self._state.stops.standing:
            self._state.stops.refuse(draft.sender_id, draft.thread_id)
        if draft.cause_id is None:
            return
        # A cause that is the waking message stands for the turn it woke.
        ended = self._state.turns.hub_end(turn or f"{draft.sender_id}-{draft.cause_id}")
        if ended is not None:
            text = f"{ended.reason}; turn {ended.turn} can send no more"
            raise OperationError(ended.code, text, details={"by": ended.by})

    def _needs_last_agent(self, entry: Entry) -> bool:
        """Whether the entry can wake its thread's last agent, and that is not loaded yet."""
        draft, thread = entry.draft, entry.thread
        speaks = entry.by_person and not draft.mentions and draft.amends is None
        return speaks and thread.is_reply and not thread.remembered

    async def _load_last_agent(self, thread: Thread) -> None:
        bodies = list(await self._store.thread_page(thread.no, None, LAST_AGENT_WINDOW))
        with suppress(LogDamaged):
            under = await self._store.message(int(thread.id.rpartition(".t")[2]))
            bodies = [*([under] if under else []), *bodies]
        for body in bodies:
            message = json.loads(body)
            speaks = message["sender_kind"] == "agent" and "amends" not in message
            if speaks and not thread.remembered:
                thread.last_agent = message["sender_id"]
        thread.remembered = True

    def committed(self, entries: Sequence[Entry]) -> None:
        """Forget committed entries: the store knows their cids."""
        for entry in entries:
            if entry.cid is not None:
                del self._pending[entry.draft.sender_id, entry.cid]

    def refused(self, entries: Sequence[Entry], error: Exception) -> None:
        """Forget entries that were not written, and undo what the gates did for them."""
        for entry in entries:
            if entry.cid is not None:
                self._pending.pop((entry.draft.sender_id, entry.cid), None)
            if not isinstance(entry.draft.purpose, TranscriptMark):
                for gate in self.gates:
                    gate.roll_back(entry)

    def repeated(self, entry: Entry) -> None:
        """Repeat the first answer to an entry whose cid is already in the store."""
        self.refused([entry], OperationError(ErrorCode.CID_CONFLICT, "already written"))
        self._metrics.duplicates += 1
        sender, cid = entry.draft.sender_id, entry.cid or ""
        for waiter, ref in ((entry.waiter, entry.ref), *entry.also):
            self.answer_repeat(sender, cid, entry.digest, waiter, ref)

    def answer_repeat(
        self,
        sender: str,
        cid: str,
        digest: int | None,
        waiter: Waiter,
        ref: str,
        otherwise: Exception | None = None,
    ) -> None:
        """Answer with the first result of (sender, cid), or with `otherwise` if there is none.

        Waits for a first write that is still in flight.
        """
        ended = self._in_flight_end(sender, cid)

        async def answer() -> None:
            none = otherwise or StoreUnavailable("the first result is not readable")
            if ended is not None:
                await ended.wait()
                none = StoreUnavailable("the first write with this cid failed; try again")
            try:
                settled = await self._store.read(SettledCall(sender, cid))
                first = await first_result(self._store, settled) if settled else b""
            except StoreUnavailable as error:
                waiter.failed(ref, error)
                return
            if settled is None:
                waiter.failed(ref, none)
            elif settled.digest == digest:
                waiter.repeated(ref, first)
            else:
                waiter.failed(ref, conflict(cid, first))

        self._spawn(answer())

    def _in_flight_end(self, sender: str, cid: str) -> asyncio.Event | None:
        """An event set when the in-flight write with this cid ends; None if there is none."""
        entry = self._pending.get((sender, cid))
        if entry is None:
            return self._settling.get((sender, cid))
        ended = asyncio.Event()
        entry.also = (*entry.also, (CallbackWaiter(lambda outcome: ended.set()), ""))
        return ended

    # Other writes -------------------------------------------------------------------------

    def commit(
        self,
        commit: Commit[Record],
        done: Callable[[BaseModel | Exception], None] = lambda answer: None,
        settle: tuple[str, str, int] | None = None,
    ) -> None:
        """Write records, then call `done` with the answer or the error.

        `settle` is (sender, cid, digest) of a call whose answer must be stored. Raises
        `OperationError` while another write with this cid is in flight.
        """
        pair = settle[:2] if settle else None
        if pair is not None:
            if pair in self._pending or pair in self._settling:
                if commit.released:
                    commit.released()
                raise _in_use(pair[1])
            self._settling[pair] = asyncio.Event()
        written: list[Record] = []

        def records(head: int) -> Sequence[Record]:
            written[:] = commit.records(head) if callable(commit.records) else commit.records
            if settle is not None and isinstance(commit.answer, BaseModel):
                first = commit.answer.model_dump_json(exclude_none=True)
                _settle(written, CallSettled(*settle, first))
            return written

        def ended(error: Exception | None) -> None:
            if pair is not None:
                self._settling.pop(pair).set()
            contradicted = next((r for r in written if isinstance(r, ModRows) and r.refused), None)
            if error is None and contradicted is not None:
                error = commit.conflict or contradicted.conflict()
            if error is None and commit.applied:
                commit.applied()
            if commit.released:
                commit.released()
            answer = error or commit.answer
            if isinstance(answer, BaseModel | Exception):
                done(answer)
            else:
                self._spawn(_answer(answer, done))
            for draft in commit.messages if error is None else ():
                self.announce(draft)

        self._log.change(Change(records, ended, pair))

    async def write(self, commit: Commit[Record]) -> BaseModel:
        """Write a commit and return its answer, or raise its error."""
        answer: asyncio.Future[BaseModel] = asyncio.get_running_loop().create_future()
        self.commit(commit, partial(settle, answer))
        return await answer

    def announce(
        self, draft: Draft, once: str | None = None, unless: Callable[[], bool] = bool
    ) -> None:
        """Post a message about something that happened, often from within a commit. If a mod
        rejects it or it is broken, that is logged and undoes nothing."""
        try:
            self.post(draft, once, unless)
        except OperationError as error:
            text, code = str(error), error.code
            log.warning("a message was refused", thread=draft.thread_id, code=code, error=text)
        except Exception:  # a mod can raise anything
            log.exception("a message could not be posted", thread=draft.thread_id)

    def post(
        self, draft: Draft, once: str | None = None, unless: Callable[[], bool] = bool
    ) -> None:
        """Post a message that no caller waits for. With a cid (`once`) it is retried when the disk
        refuses it, until `unless` is true. Raises `OperationError`."""

        def done(outcome: int | Exception) -> None:
            if once and isinstance(outcome, StoreUnavailable):
                loop = asyncio.get_running_loop()
                loop.call_later(RETRY_S, self._retry, draft, once, unless)

        later = self.submit(Entry(draft, CallbackWaiter(done), cid=once, digest=0))
        if later is not None:
            self._spawn(later)

    def _retry(self, draft: Draft, once: str, unless: Callable[[], bool]) -> None:
        if not (self._log.stopped or unless()):
            self.announce(draft, once, unless)

    def notice(
        self,
        thread_id: str,
        text: str,
        details: Mapping[str, JsonValue],
        once: str,
        *,
        to: Iterable[str],
        unless: Callable[[], bool] = bool,
    ) -> None:
        """Post a notice of the hub, which wakes no agent. `once` is its cid, `unless` as in `post`.

        It mentions the participants of `to` that still read the thread.
        """
        thread = self._state.threads.ensure(thread_id)
        draft = Draft(
            sender_id="hub",
            sender_kind="system",
            thread_id=thread_id,
            type=thread.type,
            content={"notice": details.get("code", ""), **details},
            recipients=thread_ids.members_of(thread_id),
            mentions=tuple(who for who in to if self._state.may_read(thread, who)),
            text_representation=text,
        )
        self.announce(draft, once, unless)


def _turn_sent(entry: Entry) -> Sequence[Record]:
    return [TurnSent(entry.turn or "", entry.seq)]


def _settle(written: list[Record], settled: CallSettled) -> None:
    """Store the answer with the records; beside rows of a mod, only if those are written."""
    rows = next((record for record in written if isinstance(record, ModRows)), None)
    if rows is None:
        written.append(settled)
    else:
        rows.settled = settled


async def _answer(
    make: Callable[[], Coroutine[Any, Any, BaseModel]],
    done: Callable[[BaseModel | Exception], None],
) -> None:
    try:
        answer: BaseModel | Exception = await make()
    except (OperationError, StoreUnavailable) as error:
        answer = error
    except Exception as error:  # the write stands, and the caller waits for an answer
        log.exception("an answer could not be built")
        answer = error
    done(answer)


def _in_use(cid: str) -> OperationError:
    return OperationError(ErrorCode.CID_CONFLICT, f"cid {cid} is in use by another write")


async def first_result(store: Store, settled: Settled) -> bytes:
    """The answer to the first call with this cid, as JSON."""
    if settled.seq is None:
        return settled.value or b"null"
    body = await store.message(settled.seq)
    if body is None:
        raise StoreUnavailable("the first result is not readable")
    message = Message.model_validate_json(body)
    result = PlainSendResult(
        message.id, message.seq, message.thread_id, message.tseq, Raw(body), amends=message.amends
    )
    return encode_json(result)


def conflict(cid: str, first: bytes) -> OperationError:
    """The error for a cid that another call used before."""
    return OperationError(
        ErrorCode.CID_CONFLICT,
        f"cid {cid} was used before with another body",
        details={"first": json.loads(first)},
    )
