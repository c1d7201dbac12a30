"""Requests: work that one participant asks of another. Each ends exactly once.

    delegate -> task -> open -> result, failed (`reported`)   reported by the worker
                         |  |-> failed                        by a notice of the hub, see below
                         |-> question -> open                 the worker asks, the requester replies

    timeout     the deadline passed; it does not run while a person decides about the work
    no_report   the worker's turn ended without a report
    stopped     that turn, or the wake for it, was stopped; `taken_over` likewise
    ...         the worker, or the requester it asked, was never woken: the reason's code

A message ends a request, and one commit stores both the message and the end. So the requester is
woken exactly once, whatever crashes in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

from hubbub.errors import OperationError
from hubbub.ids import message_id, parse_message_id
from hubbub.logs import get_logger
from hubbub.mods.operation import Commit, bad_request, forbidden, operation, over_limit
from hubbub.network.caller import Caller
from hubbub.network.kernel import Kernel
from hubbub.network.log import CallbackWaiter, Entry
from hubbub.network.policy import Gate
from hubbub.network.queries import LatestRequests, RequestAt, TurnById, WakeOf
from hubbub.network.records import Record
from hubbub.network.routing import cause_position
from hubbub.network.running_turns import EndedTurn
from hubbub.network.service import Service
from hubbub.network.services.approvals import ApprovalService
from hubbub.network.services.messages import sender
from hubbub.network.services.turns.notices import shown_end
from hubbub.network.services.waits import (
    RequestsAwaitingReply,
    Wait,
    Waits,
    failure_draft,
    held_up,
    hop_limit_error,
    opened_request,
    position,
    request_over_error,
    request_record,
    updated_request,
)
from hubbub.network.stored import StoreState
from hubbub.network.targets import nearest
from hubbub.network.wakes import SENTENCES, Reason
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.control import (
    Delegate,
    ListRequests,
    Report,
    Request,
    Requests,
    StopWaiting,
)
from hubbub.protocol.messages import Draft, RequestMark, TranscriptMark
from hubbub.protocol.operations import Done, SendResult
from hubbub.protocol.turns import TurnEnd

__all__ = ["RequestService"]

log = get_logger(__name__)

MAX_OPEN = 200
"""Open requests of one participant."""
HOPS = 2
"""Hops that must remain after the task: one for the report, one for the requester's own answer."""
RETRY_S = 1.0
"""Seconds until a write that the disk refused is retried."""


class RequestService(Service, Gate):
    """The open requests, and the participants that wait for an answer. The store has all
    requests."""

    def __init__(self, kernel: Kernel, approvals: ApprovalService, stored: StoreState):
        super().__init__(kernel)
        self._approvals = approvals
        self.waits = Waits()
        self._open: dict[int, Request] = {}
        """By the position of the task's message."""
        self._ends: dict[int, float] = {}
        """Deadlines on the steady clock."""
        self._paused: dict[int, float] = {}
        """Requests whose deadlines do not run, and since when on the steady clock."""
        self._ending: set[int] = set()
        """Requests whose ending message is being stored."""
        self._failing: dict[int, tuple[str, str]] = {}
        """Requests that the hub has yet to end: outcome and reason."""
        self._posting: set[int] = set()
        """Those of them whose notice is being stored."""
        self._delegated: set[int] = set()
        """Requests whose worker ended its turn while waiting for others: for their work, or for the
        reply to a question."""
        self._questions = RequestsAwaitingReply()
        self._answers: dict[str, list[int]] = {}
        """By worker: messages that ended its own requests and that no turn may have handled yet."""
        self._queues_loaded = False
        for body in stored.requests:
            self._add(Request.model_validate_json(body))

    @property
    def watches(self) -> object:  # type: ignore[override]  # read only
        return self.waits.held or self._questions.by_thread

    async def restore(self) -> None:
        """Fail the requests whose turns ended while the hub was down, now that the agents' queues
        are loaded. Raises `StoreUnavailable`."""
        self._queues_loaded = True
        for seq, request in list(self._open.items()):
            at = position(request.reply or request.id)
            wake = await self.store.read(WakeOf(request.worker, at))
            if wake is not None and wake.reply is None:
                reason = Reason(wake.reason)
                self.fail(seq, reason, f"it was not woken: {SENTENCES[reason]}")
            stored = await self.store.read(TurnById(wake.taken)) if wake and wake.taken else None
            if stored is not None and stored.end is not None:
                self._end_with(seq, TurnEnd.model_validate_json(stored.end))
            elif request.reply is not None:
                self._delegated.add(seq)
        self.approvals_changed()
        self.timer.at(self.kernel.steady.now())

    # Operations ---------------------------------------------------------------------------

    @operation(permission="write", output=SendResult)
    def delegate(self, call: Caller, args: Delegate) -> Draft:
        """Ask another agent to do something. You need not wait: you are woken once, with its result
        or its failure."""
        who = sender(call, args)
        worker = self.state.get(args.to)
        if worker is None:
            text = f"to: no agent is named {args.to!r}{nearest(args.to, self.state.agents)}"
            raise OperationError(ErrorCode.UNKNOWN_PARTICIPANT, text)
        if worker.kind != "agent":
            raise bad_request(f"to: {args.to} is not an agent; send a message instead")
        if (down := self.state.down.get(worker.id)) is not None:
            raise OperationError(ErrorCode.UNKNOWN_PARTICIPANT, f"to: {worker.id} {down}")
        thread = self.kernel.router.thread(args.to, who.id)
        deadline = datetime.fromtimestamp(self.kernel.clock.now() + args.deadline_s, UTC)
        draft = self.kernel.router.draft(who, thread, args.task, args)
        mark = RequestMark(id="", kind="task", deadline=deadline)
        return draft.replace(purpose=mark)

    @operation(permission="write", output=SendResult)
    async def report(self, call: Caller, args: Report) -> Draft:
        """Report the outcome of a request to its requester. This ends the request, so report once.
        With status `question` you ask the requester for what you need and the request stays open:
        finish your turn, and the reply wakes you."""
        who = sender(call, args)
        request = await self._visible(call, args.request, who.id)
        if request.worker != who.id:
            raise forbidden(f"only {request.worker} can report on request {request.id}")
        if request.state != "open":
            raise request_over_error(request.id, request)
        if args.cause is not None:
            await self._check_cause(call, args.cause, who.id)
        thread = self.state.threads.ensure(request.thread_id)
        draft = self.kernel.router.draft(who, thread, args.text, args)
        outcome = "reported" if args.status == "failed" else ""
        mark = RequestMark(id=request.id, kind=args.status, outcome=outcome)
        return draft.replace(purpose=mark, cause_id=args.cause or request.id)

    async def _check_cause(self, call: Caller, cause: str, who: str) -> None:
        """Raises `OperationError` unless `who` has received the cause of its report. The log does
        not check this, as it takes the request as the cause."""
        state, (seq, _) = self.state, cause_position(cause, who)
        ancestor = await self.kernel.writes.causes.ancestor(seq)
        thread = state.threads.by_no(ancestor.thread_no) if ancestor is not None else None
        if thread is None or not state.may_read(thread, who):
            raise OperationError(
                ErrorCode.UNKNOWN_MESSAGE, f"cause: {cause[:100]} never reached you"
            )

    async def _visible(self, call: Caller, id: str, who: str) -> Request:
        """The request. Raises `OperationError` unless `who` is its requester or worker."""
        seq = parse_message_id(id)
        request = await self.find(seq) if seq is not None else None
        if request is None or who not in (request.requester, request.worker):
            text = f"no request {id[:64]!r} is visible to you; see list_requests"
            raise OperationError(ErrorCode.UNKNOWN_REQUEST, text)
        return request

    @operation(tool=False)
    async def list_requests(self, call: Caller, args: ListRequests) -> Requests:
        """List requests, newest first: those you made or were given; all of them for an owner."""
        if args.id is not None:
            return Requests(requests=(await self._visible(call, args.id, call.participant),))
        whose = None if call.owner and not args.own else call.participant
        state = "open" if args.state == "open" else None
        bodies = await self.store.read(LatestRequests(whose, state, args.limit))
        return Requests(requests=tuple(map(Request.model_validate_json, bodies)))

    @operation(permission="write", tool=False, idempotent=True)
    def stop_waiting(self, call: Caller, args: StopWaiting) -> Done:
        """Stop waiting for the answer to a message that you sent with `awaits`."""
        waits = self.waits
        wait = waits.held.get(args.message)
        if wait is not None and wait.asker == call.participant:
            waits.end(args.message)
        return Done()

    # Lookups ------------------------------------------------------------------------------

    def any_open(self, seqs: Iterable[int]) -> bool:
        """Whether any of these messages opened a request that is still open."""
        return any(seq in self._open for seq in seqs)

    async def find(self, seq: int) -> Request | None:
        """The request opened by the message at `seq`. Raises `StoreUnavailable`."""
        if (request := self._open.get(seq)) is not None:
            return request
        body = await self.store.read(RequestAt(seq))
        return None if body is None else Request.model_validate_json(body)

    # A message's path ---------------------------------------------------------------------

    def judge(self, entry: Entry) -> None:
        """Check whether a message is allowed to open or end a request, or to wait."""
        draft = entry.draft
        if len(draft.recipients) == 1:  # in a group no single recipient waits for it
            entry.awaited = self.waits.wait_for(draft.sender_id, draft.recipients)
        mark = draft.request
        # A silent message wakes no one, so it cannot be what the worker waits for.
        plain = draft.purpose is None and not draft.silent
        if plain and draft.thread_id in self._questions.by_thread:
            mark = self._reply(entry)
        if mark is None and not draft.awaits:
            return
        if mark is not None:
            self._check(entry, mark)
        if draft.awaits and not draft.by_person:
            self._wait(entry)
        if mark is not None:
            entry.rows = (*entry.rows, self._rows)
            if mark.ends:
                self._ending.add(position(mark.id))

    def _reply(self, entry: Entry) -> RequestMark | None:
        """Mark a message that replies to a question."""
        request = self._questions.replied(entry.draft)
        if request is None or position(request.id) in self._ending:
            return None
        mark = RequestMark(id=request.id, kind="reply")
        entry.draft = entry.draft.replace(purpose=mark)
        return mark

    def _check(self, entry: Entry, mark: RequestMark) -> None:
        """Raises `OperationError` if a request cannot be opened, asked about or ended."""
        seq = position(mark.id)
        if mark.id and (seq not in self._open or seq in self._ending):
            raise request_over_error(mark.id, self._open.get(seq))
        if mark.kind in ("task", "question") and entry.hop + HOPS > entry.hop_limit:
            raise hop_limit_error(entry)
        asker = entry.draft.sender_id
        own = (each for each in self._open.values() if each.requester == asker)
        if mark.kind == "task" and sum(1 for _ in own) >= MAX_OPEN:
            raise over_limit(f"you have {MAX_OPEN} open requests already; see list_requests")

    def _wait(self, entry: Entry) -> None:
        draft = entry.draft
        if draft.type != "direct" or len(draft.recipients) != 1:
            raise bad_request("awaits: only a direct message to one participant can be waited for")
        self.waits.begin(entry, Wait(draft.sender_id, draft.recipients[0], entry.turn))

    def _rows(self, entry: Entry) -> Sequence[Record]:
        """The record of a request, stored with the message that opens, changes or ends it."""
        mark = entry.draft.request
        assert mark is not None, "only set for messages with a mark"
        if mark.kind == "task":
            return [request_record(opened_request(entry, mark, self.kernel.clock.now()))]
        return [request_record(updated_request(self._open[position(mark.id)], entry, mark))]

    def committed(self, entries: Sequence[Entry]) -> None:
        """Apply committed messages."""
        for entry in entries:
            draft = entry.draft
            # Imported messages answer no one who is waiting now.
            means = draft.purpose is not None or draft.awaits or self.waits.held
            if means and not isinstance(draft.purpose, TranscriptMark):
                self._committed(entry)

    def _committed(self, entry: Entry) -> None:
        draft, mark = entry.draft, entry.draft.request
        if draft.awaits:
            self.waits.rename(entry, message_id(entry.seq))
        if draft.type == "direct" and draft.amends is None:
            self.waits.answered(draft.sender_id, draft.recipients)
        if mark is None:
            return
        seq = position(mark.id)
        if mark.ends:
            self.waits.end(mark.id)
            self._answered(seq, entry.seq)
            self._remove(seq)
        elif mark.kind == "task":
            request = opened_request(entry, mark, self.kernel.clock.now())
            self.timer.at(self._add(request))
            self._check_woken(entry, entry.seq, request.worker)
        elif seq in self._open:
            request = self._open[seq] = updated_request(self._open[seq], entry, mark)
            self._questions.take(request)
            if mark.kind == "question" or seq in self._delegated:  # else a turn is working on it
                target = request.requester if mark.kind == "question" else request.worker
                self._check_woken(entry, seq, target)

    def _check_woken(self, entry: Entry, seq: int, agent: str) -> None:
        """Fail a request whose message does not wake the agent that must act on it."""
        for participant, reason, reply in entry.decisions:
            if participant == agent and reply is None and agent in self.state.agents:
                self.fail(seq, reason, f"{agent} was not woken: {SENTENCES[reason]}")

    def roll_back(self, entry: Entry) -> None:
        draft, mark = entry.draft, entry.draft.request
        if mark is None and not draft.awaits:
            return
        self.waits.end(entry)
        if mark is not None and mark.ends:
            self._ending.discard(position(mark.id))
            self._retry_later()

    def _answered(self, seq: int, answer: int) -> None:
        asker = self._open[seq].requester
        self._answers[asker] = [*self._unfinished_answers(asker), answer]

    def _unfinished_answers(self, agent: str) -> list[int]:
        """Messages that ended the agent's own requests and whose wakes it has not finished."""
        holds = self.kernel.queues.holds
        return [answer for answer in self._answers.pop(agent, ()) if holds(agent, answer)]

    def _add(self, request: Request) -> float:
        """Add an open request. Returns its deadline on the steady clock."""
        seq = position(request.id)
        until, since = request.deadline.timestamp(), request.asked_at.timestamp()
        self._open[seq], self._ends[seq] = request, self.kernel.steady.moment(until, since)
        self._questions.take(request)
        return self._ends[seq]

    def _remove(self, seq: int) -> None:
        self._delegated.discard(seq)
        if (request := self._open.pop(seq, None)) is not None:
            self._questions.drop(request)
        self._ends.pop(seq, None)
        self._paused.pop(seq, None)
        self._failing.pop(seq, None)
        self._ending.discard(seq)

    # Ends without a report ----------------------------------------------------------------

    def turn_over(self, agent: str, turn: str, messages: Iterable[str], end: TurnEnd) -> None:
        """A turn that handled these messages ended: fail the requests that it neither reported nor
        delegated further."""
        self.waits.turn_over(agent, turn)
        for seq in map(position, messages):
            request = self._open.get(seq)
            if request is not None and request.worker == agent:
                self._end_with(seq, end)
        for seq in self._no_longer_waiting(agent):
            self._end_with(seq, end)

    def _end_with(self, seq: int, end: TurnEnd) -> None:
        if seq not in self._open:
            return  # it was reported during the read
        end = shown_end(self.kernel, end, self._open[seq].thread_id)
        reason = f": {end.reason}" if end.reason else ""
        if end.by is not None:
            self.fail(seq, "stopped", f"it was stopped{reason}")
        elif end.outcome == "finished" and (not self._queues_loaded or self._is_waiting(seq)):
            self._delegated.add(seq)
        else:
            self.fail(seq, "no_report", f"its turn ended ({end.outcome}{reason})")

    def _no_longer_waiting(self, agent: str) -> list[int]:
        """The agent's requests that were waiting for others and no longer are."""
        handed = self._delegated if self._queues_loaded else ()
        of_agent = (seq for seq in handed if self._open[seq].worker == agent)
        return [seq for seq in of_agent if not self._is_waiting(seq)]

    def _is_waiting(self, seq: int) -> bool:
        """Whether the worker waits for a reply or for others' work, or has yet to handle it. It can
        still report after that."""
        request, holds = self._open[seq], self.kernel.queues.holds
        worker, reply = request.worker, request.reply
        if request.question and (reply is None or holds(worker, position(reply))):
            return True
        untaken = self._unfinished_answers(worker)
        if untaken:
            self._answers[worker] = untaken
            return True
        later = (other for at, other in self._open.items() if at > seq and at not in self._failing)
        return any(other.requester == worker for other in later)

    def turns_ended(self, ended: Iterable[EndedTurn]) -> None:
        """Fail the requests of turns and wakes that were ended on their agents' behalf."""
        for each in ended:
            self.waits.turn_over(each.agent, each.turn)
            own = position(each.turn.rpartition("-")[2])
            for seq in {own, *self._no_longer_waiting(each.agent)} & self._open.keys():
                if self._open[seq].worker == each.agent:
                    self.fail(seq, each.code, f"{each.agent} was stopped ({each.reason})")

    def absent(self, participant: str, *, replaced: bool) -> None:
        """The participant left, so it waits for no answers."""
        self.waits.left(participant)

    def fail(self, seq: int, outcome: str, why: str) -> None:
        """End the request as failed, retrying while the disk refuses; no effect if it has ended."""
        if seq in self._open and seq not in self._failing:
            self._failing[seq] = (outcome, why)
            self._post_failure(seq)

    def due(self, now: float) -> float | None:
        for seq in list(self._failing):
            self._post_failure(seq)
        if not self._queues_loaded:
            return None  # it is not known yet which requests wait for a person
        self.approvals_changed()
        for seq, request in list(self._open.items()):
            if self._ends[seq] <= now and seq not in self._paused:
                asked = request.deadline - request.asked_at
                self.fail(seq, "timeout", f"{asked.total_seconds():g} s passed")
        left = self._open.keys() - self._failing.keys() - self._paused.keys()
        return min((self._ends[seq] for seq in left), default=None)

    def approvals_changed(self) -> None:
        """Pause the deadlines of requests that now wait for people, and resume the others."""
        since = dict[int, float]()
        for approval in reversed(self._approvals.pending()):
            asked = self.kernel.steady.moment(approval.asked_at.timestamp())
            since |= {seq: asked for _, seq in self.kernel.queues.taken_by(approval.turn)}
        now, waiting = self.kernel.steady.now(), held_up(self._open, since)
        for seq in self._paused.keys() - waiting.keys():
            self._extend(seq, now - self._paused.pop(seq))
        self._paused = waiting | self._paused

    def _extend(self, seq: int, seconds: float) -> None:
        """Move the deadline of an open request."""
        request = self._open[seq]
        deadline = request.deadline + timedelta(seconds=seconds)
        self._open[seq] = request = request.model_copy(update={"deadline": deadline})
        self._questions.take(request)
        self._ends[seq] += seconds
        self.timer.at(self._ends[seq])
        if seq not in self._ending:
            self.kernel.writes.commit(Commit([request_record(request)], request))

    def _retry_later(self) -> None:
        """Retry the pending failures in a while."""
        if self._failing:
            self.timer.at(self.kernel.steady.now() + RETRY_S)

    def _post_failure(self, seq: int) -> None:
        """Post that the request failed, which wakes the requester."""
        request, (outcome, why) = self._open[seq], self._failing[seq]
        if seq in self._ending or seq in self._posting:
            return  # a report came first; if the disk refuses that, this is retried
        draft = failure_draft(request, outcome, why)
        self._posting.add(seq)
        try:
            later = self.kernel.writes.submit(
                Entry(draft, CallbackWaiter(partial(self._posted, seq)))
            )
        except OperationError as error:
            self._posted(seq, error)
        except Exception as error:  # a mod can raise anything, and a commit must proceed
            log.exception("a mod failed", request=request.id)
            self._posted(seq, OperationError(ErrorCode.INTERNAL, f"a mod failed: {error}"))
        else:
            if later is not None:
                self.kernel.spawn(later)

    def _end_silently(self, request: Request, outcome: str, error: Exception) -> None:
        """End the request without a message, as a mod rejected it."""
        log.warning("a request ended without a notice", request=request.id, error=str(error))
        seq = position(request.id)
        self._ending.add(seq)
        ended = request.model_copy(update={"state": "failed", "outcome": outcome})

        def released() -> None:
            self._ending.discard(seq)
            self._retry_later()

        records: list[Record] = [request_record(ended)]
        self.kernel.writes.commit(Commit(records, ended, lambda: self._remove(seq), released))

    def _posted(self, seq: int, outcome: int | Exception) -> None:
        self._posting.discard(seq)
        if isinstance(outcome, int) or seq not in self._failing:
            return
        if isinstance(outcome, OperationError) and outcome.code != ErrorCode.REQUEST_OVER:
            self._end_silently(self._open[seq], self._failing[seq][0], outcome)
        else:
            self._retry_later()
