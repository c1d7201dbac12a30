"""Everything between an operation's answer and the log: mods, trace context, wakes, gates,
idempotent cids."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Raw
from pydantic import BaseModel, JsonValue

from hubbub.errors import OperationError, StoreUnavailable
from hubbub.ids import parse_message_id
from hubbub.logs import get_logger
from hubbub.mods.operation import Commit
from hubbub.mods.pipeline import Pipeline
from hubbub.network.ancestors import Ancestors
from hubbub.network.log import CallbackWaiter, Change, Entry, Log, RowsOf, Waiter, settle
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

__all__ = ["Writes"]

log = get_logger(__name__)

AGAIN_S = 1.0
"""Seconds until what the hub does by itself, and the disk has refused, is tried again."""
RECALL = 50
"""Messages of a thread that are searched for the agent that spoke last."""

Spawn = Callable[[Coroutine[Any, Any, None]], None]
"""Runs a coroutine in the hub's task group."""


class Writes:
    """Hands entries and records to the log, each at most once per (sender, cid)."""

    gates: Sequence[Gate] = ()
    """The policy: who judges a message, in this order."""
    rows: tuple[RowsOf, ...] = ()
    """What is written with every message, imported ones included."""

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
        """Calls that are no message and whose answer is on its way to the store, by (sender, cid).
        """

    # Messages -----------------------------------------------------------------------------

    def submit(self, entry: Entry) -> Coroutine[Any, Any, None] | None:
        """Bring an entry into the log; its waiter is answered after the commit, or told why not.

        Returns what is left to do when something must be read from the store before (the cause, who
        spoke last), or a mod takes long. Raises `OperationError` for what can be refused at once.
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
        """Let the mods take their time with the draft, and go on with it. `refers`: they look up
        what it refers to before they judge it."""
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
        """Whether the same write is on its way already; then the waiter waits for it too."""
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
        """What is left to do now that the mods have judged the draft. Raises `OperationError`."""
        draft, cause, seq = entry.draft, None, None
        if draft.cause_id is not None:
            seq, entry.turn = cause_position(draft.cause_id, draft.sender_id)
            if isinstance(draft.purpose, RequestMark) and draft.purpose.ends:
                # What ends a request is a word about that, by whatever way the worker came to it.
                seq = parse_message_id(draft.purpose.id) or seq
            cause = self.causes.recent(seq)
            if cause is not None and not entry.by_person and self._must_load(cause):
                cause = None
        threads, thread_id = self._state.threads, draft.thread_id
        entry.thread = threads.by_id.get(thread_id) or threads.ensure(thread_id)
        if (seq is not None and cause is None) or (entry.thread.is_reply and self._asks(entry)):
            return self._judge_later(entry, seq)
        self._enter(entry, cause)
        return None

    def _refuse(self, entry: Entry, error: OperationError | StoreUnavailable) -> None:
        """Tell who asks, unless the entry repeats a write that succeeded before."""
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
            if self._asks(entry):
                await self._remember(entry.thread)
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
        if draft.sender_kind == "agent" and draft.spoken_by is None:
            self._check_may_speak(draft, entry.turn)
        if cause is not None and cause.outside and not entry.by_person:
            draft = entry.draft = draft.replace(outside=True)
        self._router.judge(entry, cause)
        special = draft.awaits or isinstance(draft.purpose, RequestMark)
        passed = 0
        try:
            for gate in self.gates if special or entry.wakes or entry.interaction else ():
                if special or gate.watches:
                    gate.judge(entry)
                passed += 1
        except BaseException:
            for gate in self.gates[:passed]:
                gate.take_back(entry)
            raise
        if entry.turn is not None:
            entry.rows = (*entry.rows, _turn_sent)
        self._append(entry)

    def _append(self, entry: Entry) -> None:
        entry.rows += self.rows
        if entry.cid is not None:
            self._pending[entry.draft.sender_id, entry.cid] = entry
        self._log.append(entry)

    async def restore(self, entry: Entry, interaction: str | None, hop: int) -> None:
        """Bring a message of a transcript into the log, as it was said: it wakes nobody, is charged
        to nobody, and neither asks nor ends anything. `interaction` is None if it opened its own.

        Mods judge it as any other, gates do not. Raises `OperationError`.
        """
        assert isinstance(entry.draft.purpose, TranscriptMark), "it says when it was said"
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
        # Who names the message that woke it means the turn that it was woken for.
        ended = self._state.turns.why_over(turn or f"{draft.sender_id}-{draft.cause_id}")
        if ended is not None:
            text = f"{ended.reason}; turn {ended.turn} says no more"
            raise OperationError(ended.code, text, details={"by": ended.by})

    def _asks(self, entry: Entry) -> bool:
        """Whether the entry may wake who spoke last in its thread, and that is not known yet."""
        draft, thread = entry.draft, entry.thread
        speaks = entry.by_person and not draft.mentions and draft.amends is None
        return speaks and thread.is_reply and not thread.remembered

    async def _remember(self, thread: Thread) -> None:
        bodies = list(await self._store.thread_page(thread.no, None, RECALL))
        under = await self._store.message(int(thread.id.rpartition(".t")[2]))
        for body in [*([under] if under else []), *bodies]:
            message = json.loads(body)
            speaks = message["sender_kind"] == "agent" and "amends" not in message
            if speaks and not thread.remembered:
                thread.last_agent = message["sender_id"]
        thread.remembered = True

    def committed(self, entries: Sequence[Entry]) -> None:
        """Entries are durable, and no longer on their way."""
        for entry in entries:
            if entry.cid is not None:
                del self._pending[entry.draft.sender_id, entry.cid]

    def refused(self, entries: Sequence[Entry], error: Exception) -> None:
        """The entries are no longer on their way, and not in the log."""
        for entry in entries:
            if entry.cid is not None:
                self._pending.pop((entry.draft.sender_id, entry.cid), None)
            if not isinstance(entry.draft.purpose, TranscriptMark):
                for gate in self.gates:
                    gate.take_back(entry)

    def repeated(self, entry: Entry) -> None:
        """The entry's cid is in the store already: answer what it was answered then."""
        self.refused([entry], OperationError(ErrorCode.CID_CONFLICT, "it was written before"))
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
        """Answer with the first result of (sender, cid); `otherwise` if there is none.

        A first write that is on its way is waited for.
        """
        over = self._over(sender, cid)

        async def answer() -> None:
            none = otherwise or StoreUnavailable("the first result is not readable")
            if over is not None:
                await over.wait()
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

    def _over(self, sender: str, cid: str) -> asyncio.Event | None:
        """Set when the write with this cid that is on its way is over; None if there is none."""
        entry = self._pending.get((sender, cid))
        if entry is None:
            return self._settling.get((sender, cid))
        over = asyncio.Event()
        entry.also = (*entry.also, (CallbackWaiter(lambda outcome: over.set()), ""))
        return over

    # Other writes -------------------------------------------------------------------------

    def commit(
        self,
        commit: Commit[Record],
        done: Callable[[BaseModel | Exception], None] = lambda answer: None,
        settle: tuple[str, str, int] | None = None,
    ) -> None:
        """Write records, then call `done` with the answer or with what went wrong.

        `settle` is (sender, cid, digest) of a call whose answer must be kept. Raises
        `OperationError` while another write with this cid is on its way.
        """
        pair = settle[:2] if settle else None
        if pair is not None:
            if pair in self._pending or pair in self._settling:
                if commit.released:
                    commit.released()
                raise _in_use(pair[1])
            self._settling[pair] = asyncio.Event()
        made: list[Record] = []

        def records(head: int) -> Sequence[Record]:
            made[:] = commit.records(head) if callable(commit.records) else commit.records
            if settle is not None and isinstance(commit.answer, BaseModel):
                first = commit.answer.model_dump_json(exclude_none=True)
                _settle(made, CallSettled(*settle, first))
            return made

        def over(error: Exception | None) -> None:
            if pair is not None:
                self._settling.pop(pair).set()
            contradicted = next((r for r in made if isinstance(r, ModRows) and r.refused), None)
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

        self._log.change(Change(records, over, pair))

    async def write(self, commit: Commit[Record]) -> BaseModel:
        """Write a commit; returns its answer, or raises why there is none."""
        answer: asyncio.Future[BaseModel] = asyncio.get_running_loop().create_future()

        self.commit(commit, partial(settle, answer))
        return await answer

    def announce(
        self, draft: Draft, once: str | None = None, unless: Callable[[], bool] = bool
    ) -> None:
        """Bring a message into the log that tells what has happened, often from within a commit:
        one that a mod rejects, or that is broken, undoes nothing and stops nothing."""
        try:
            self.say(draft, once, unless)
        except OperationError as error:
            text, code = str(error), error.code
            log.warning("a message was refused", thread=draft.thread_id, code=code, error=text)
        except Exception:  # a mod may raise anything
            log.exception("a message could not be posted", thread=draft.thread_id)

    def say(self, draft: Draft, once: str | None = None, unless: Callable[[], bool] = bool) -> None:
        """Bring a message into the log that nobody waits for; one with a cid, `once`, is said again
        when the disk has refused it, `unless` it is not true any more. Raises `OperationError`."""

        def done(outcome: int | Exception) -> None:
            if once and isinstance(outcome, StoreUnavailable):
                loop = asyncio.get_running_loop()
                loop.call_later(AGAIN_S, self._again, draft, once, unless)

        later = self.submit(Entry(draft, CallbackWaiter(done), cid=once, digest=0))
        if later is not None:
            self._spawn(later)

    def _again(self, draft: Draft, once: str, unless: Callable[[], bool]) -> None:
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
        """Post a notice of the hub, once: it wakes nobody. `once` is its cid, `unless` as in `say`.

        It mentions those of `to`, whom it concerns, who still read the thread.
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


def _settle(made: list[Record], settled: CallSettled) -> None:
    """Keep the answer with the records; with rows of a mod only if those are written."""
    rows = next((record for record in made if isinstance(record, ModRows)), None)
    if rows is None:
        made.append(settled)
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
    except Exception as error:  # it is written all the same, and whoever asked waits
        log.exception("an answer could not be made")
        answer = error
    done(answer)


def _in_use(cid: str) -> OperationError:
    return OperationError(ErrorCode.CID_CONFLICT, f"cid {cid} is being used for another write")


async def first_result(store: Store, settled: Settled) -> bytes:
    """What the first call with this cid was answered, as JSON."""
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
    """The error for a cid that was used for something else."""
    return OperationError(
        ErrorCode.CID_CONFLICT,
        f"cid {cid} was used before with another body",
        details={"first": json.loads(first)},
    )
