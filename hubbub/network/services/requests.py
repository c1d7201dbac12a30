"""Requests: work that one participant has asked of another. Each ends once.

    delegate -> task -> open -> result, failed (`reported`)   by the worker's report
                         |  |-> failed                        by the hub's word, see below
                         |-> asked back -> open               by its question, and the reply

    timeout     its deadline has passed
    no_report   the worker's turn has ended without a report
    stopped     that turn, or the wake for it, was stopped; `taken_over` in the same way
    ...         the worker, or who is to reply to it, was never woken: the reason's code

What ends a request is a message, and in the same commit as the message the request is over: so the
one who asked is woken once, whatever dies in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
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
from hubbub.network.services.messages import sender
from hubbub.network.services.waits import (
    RequestsAwaitingReply,
    Wait,
    Waits,
    asked_by,
    changed,
    failure,
    kept,
    no_way_back,
    over,
    position,
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

MOST_OPEN = 200
"""Open requests of one participant."""
HOPS = 2
"""That must be left after the task's own: for the report, and for what is then said to who waits.
"""
RETRY_S = 1.0
"""Seconds until what the disk has refused is tried again."""


class RequestService(Service, Gate):
    """The open requests, and who waits for whose answer. The store has all requests."""

    def __init__(self, kernel: Kernel, stored: StoreState):
        super().__init__(kernel)
        self.waits = Waits()
        self._open: dict[int, Request] = {}
        """By the position of the message that asked."""
        self._ends: dict[int, float] = {}
        """When their time is up, by the steady clock."""
        self._ending: set[int] = set()
        """Those that a message on its way to the store ends."""
        self._lost: dict[int, tuple[str, str]] = {}
        """Those that the hub is to end: outcome and why, until it is done."""
        self._saying: set[int] = set()
        """Those of them of which the hub's word is on its way."""
        self._handed: set[int] = set()
        """Those whose worker's turn has ended while it waited for somebody else: for work, or for
        the reply to a question."""
        self._questions = RequestsAwaitingReply()
        self._answers: dict[str, list[int]] = {}
        """By worker: messages that ended requests of its own, and that no turn may have taken up.
        """
        self._knows_queues = False
        for body in stored.requests:
            self._keep(Request.model_validate_json(body))

    @property
    def watches(self) -> object:  # type: ignore[override]  # read only
        return self.waits.held or self._questions.by_thread

    def begin(self) -> None:
        if self._open:
            self.timer.at(min(self._ends.values()))

    async def restore(self) -> None:
        """Bring to an end what ended while the hub was down, now that it is known what waits at
        agents. Raises `StoreUnavailable`."""
        self._knows_queues = True
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
                self._handed.add(seq)

    # Operations ---------------------------------------------------------------------------

    @operation(permission="write", output=SendResult)
    def delegate(self, call: Caller, args: Delegate) -> Draft:
        """Ask another agent to do something. You are woken once, with its result or when it has
        failed, and need not wait meanwhile."""
        who = sender(call, args)
        known = self.state.get(args.to)
        if known is None:
            text = f"to: there is no agent {args.to!r}{nearest(args.to, self.state.agents)}"
            raise OperationError(ErrorCode.UNKNOWN_PARTICIPANT, text)
        if known.kind != "agent":
            raise bad_request(f"to: {args.to} is no agent; send a message instead")
        thread = self.kernel.router.thread(args.to, who.id)
        deadline = datetime.fromtimestamp(self.kernel.clock.now() + args.deadline_s, UTC)
        draft = self.kernel.router.draft(who, thread, args.task, args)
        mark = RequestMark(id="", kind="task", deadline=deadline)
        return draft.replace(purpose=mark)

    @operation(permission="write", output=SendResult)
    async def report(self, call: Caller, args: Report) -> Draft:
        """Tell who has asked you for something what came of it. This ends the request: there is one
        report. With the status `question` you ask them for what you must know, and the request
        stays open: finish, and you are woken by the reply."""
        who = sender(call, args)
        request = await self._visible(call, args.request, who.id)
        if request.worker != who.id:
            raise forbidden(f"request {request.id} is {request.worker}'s to report")
        if request.state != "open":
            raise over(request.id, request)
        if args.cause is not None:
            await self._check_cause(call, args.cause, who.id)
        thread = self.state.threads.ensure(request.thread_id)
        draft = self.kernel.router.draft(who, thread, args.text, args)
        outcome = "reported" if args.status == "failed" else ""
        mark = RequestMark(id=request.id, kind=args.status, outcome=outcome)
        return draft.replace(purpose=mark, cause_id=args.cause or request.id)

    async def _check_cause(self, call: Caller, cause: str, who: str) -> None:
        """Raises `OperationError` unless the cause of a report has reached `who`: the log goes by
        the request instead, and does not look at it."""
        state, (seq, _) = self.state, cause_position(cause, who)
        found = await self.kernel.writes.causes.ancestor(seq)
        thread = state.threads.by_no(found.thread_no) if found is not None else None
        if thread is None or not state.may_read(thread, who):
            raise OperationError(
                ErrorCode.UNKNOWN_MESSAGE, f"cause: {cause[:100]} never reached you"
            )

    async def _visible(self, call: Caller, id: str, who: str) -> Request:
        """The request, if `who` takes part in it. Raises `OperationError`."""
        seq = parse_message_id(id)
        request = await self.known(seq) if seq is not None else None
        if request is None or who not in (request.requester, request.worker):
            text = f"there is no request {id[:64]!r} for you; see list_requests"
            raise OperationError(ErrorCode.UNKNOWN_REQUEST, text)
        return request

    @operation(tool=False)
    async def list_requests(self, call: Caller, args: ListRequests) -> Requests:
        """List requests, newest first: those that you have made or are to report, all for an
        owner."""
        if args.id is not None:
            found = await self._visible(call, args.id, call.participant)
            return Requests(requests=(found,))
        whose = None if call.owner else call.participant
        state = "open" if args.state == "open" else None
        bodies = await self.store.read(LatestRequests(whose, state, args.limit))
        return Requests(requests=tuple(map(Request.model_validate_json, bodies)))

    @operation(permission="write", tool=False, idempotent=True)
    def stop_waiting(self, call: Caller, args: StopWaiting) -> Done:
        """Say that you no longer wait for the answer to a message that was sent with `awaits`."""
        waits = self.waits
        wait = waits.held.get(args.message)
        if wait is not None and wait.asker == call.participant:
            waits.end(args.message)
        return Done()

    # Looking ------------------------------------------------------------------------------

    def any_open(self, seqs: Iterable[int]) -> bool:
        """Whether one of these messages has made a request that is open."""
        return any(seq in self._open for seq in seqs)

    async def known(self, seq: int) -> Request | None:
        """The request that the message at `seq` made. Raises `StoreUnavailable`."""
        found = self._open.get(seq)
        if found is not None:
            return found
        body = await self.store.read(RequestAt(seq))
        return None if body is None else Request.model_validate_json(body)

    # The way of a message -----------------------------------------------------------------

    def judge(self, entry: Entry) -> None:
        """Whether a message may ask, end a request, or wait."""
        draft = entry.draft
        if len(draft.recipients) == 1:  # others who hear an answer do not wait for it
            entry.awaited = self.waits.wait_for(draft.sender_id, draft.recipients)
        mark = draft.request
        if draft.purpose is None and draft.thread_id in self._questions.by_thread:
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
        """The mark that a message has by replying to a question."""
        request = self._questions.replied(entry.draft)
        if request is None or position(request.id) in self._ending:
            return None
        mark = RequestMark(id=request.id, kind="reply")
        entry.draft = entry.draft.replace(purpose=mark)
        return mark

    def _check(self, entry: Entry, mark: RequestMark) -> None:
        """Raises `OperationError` where a request may not be made, asked about or ended."""
        seq = position(mark.id)
        if mark.id and (seq not in self._open or seq in self._ending):
            raise over(mark.id, self._open.get(seq))
        if mark.kind in ("task", "question") and entry.hop + HOPS > entry.hop_limit:
            raise no_way_back(entry)
        asker = entry.draft.sender_id
        own = (each for each in self._open.values() if each.requester == asker)
        if mark.kind == "task" and sum(1 for _ in own) >= MOST_OPEN:
            raise over_limit(f"{MOST_OPEN} requests of yours are open; see list_requests")

    def _wait(self, entry: Entry) -> None:
        draft = entry.draft
        if draft.type != "direct" or len(draft.recipients) != 1:
            raise bad_request("awaits: only direct messages to one participant are waited for")
        self.waits.begin(entry, Wait(draft.sender_id, draft.recipients[0], entry.turn))

    def _rows(self, entry: Entry) -> Sequence[Record]:
        """What the store keeps of a message that asks or ends a request, with the message."""
        mark = entry.draft.request
        assert mark is not None, "asked for messages with a mark only"
        if mark.kind == "task":
            return [kept(asked_by(entry, mark, self.kernel.clock.now()))]
        return [kept(changed(self._open[position(mark.id)], entry, mark))]

    def committed(self, entries: Sequence[Entry]) -> None:
        """Messages are in the log."""
        for entry in entries:
            draft = entry.draft
            # What a transcript tells answers nobody who waits now.
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
            self._over(seq)
        elif mark.kind == "task":
            request = asked_by(entry, mark, self.kernel.clock.now())
            self.timer.at(self._keep(request))
            self._check_woken(entry, entry.seq, request.worker)
        elif seq in self._open:
            request = self._open[seq] = changed(self._open[seq], entry, mark)
            self._questions.take(request)
            if mark.kind == "question" or seq in self._handed:  # else a turn is at work on it
                whom = request.requester if mark.kind == "question" else request.worker
                self._check_woken(entry, seq, whom)

    def _check_woken(self, entry: Entry, seq: int, agent: str) -> None:
        """A request whose message does not wake the agent that it is for has failed."""
        for participant, reason, reply in entry.decisions:
            if participant == agent and reply is None and agent in self.state.agents:
                self.fail(seq, reason, f"{agent} was not woken: {SENTENCES[reason]}")

    def take_back(self, entry: Entry) -> None:
        draft, mark = entry.draft, entry.draft.request
        if mark is None and not draft.awaits:
            return
        self.waits.end(entry)
        if mark is not None and mark.ends:
            self._ending.discard(position(mark.id))
            self._again()

    def _answered(self, seq: int, answer: int) -> None:
        asker = self._open[seq].requester
        self._answers[asker] = [*self._untaken(asker), answer]

    def _untaken(self, agent: str) -> list[int]:
        """The ends of the agent's own requests that it is woken by and is not done with."""
        holds = self.kernel.queues.holds
        return [answer for answer in self._answers.pop(agent, ()) if holds(agent, answer)]

    def _keep(self, request: Request) -> float:
        """It is open. Returns when its time is up."""
        seq = position(request.id)
        until, since = request.deadline.timestamp(), request.asked_at.timestamp()
        self._open[seq], self._ends[seq] = request, self.kernel.steady.moment(until, since)
        self._questions.take(request)
        return self._ends[seq]

    def _over(self, seq: int) -> None:
        self._handed.discard(seq)
        if (request := self._open.pop(seq, None)) is not None:
            self._questions.drop(request)
        self._ends.pop(seq, None)
        self._lost.pop(seq, None)
        self._ending.discard(seq)

    # Ends that nobody reports -------------------------------------------------------------

    def turn_over(self, agent: str, turn: str, messages: Iterable[str], end: TurnEnd) -> None:
        """A turn about these messages has ended: what it has neither reported nor handed on has
        failed."""
        self.waits.turn_over(agent, turn)
        for seq in map(position, messages):
            request = self._open.get(seq)
            if request is not None and request.worker == agent:
                self._end_with(seq, end)
        for seq in self._left(agent):
            self._end_with(seq, end)

    def _end_with(self, seq: int, end: TurnEnd) -> None:
        if seq not in self._open:
            return  # it was reported while the store was asked
        reason = f": {end.reason}" if end.reason else ""
        if end.by is not None:
            self.fail(seq, "stopped", f"it was stopped{reason}")
        elif end.outcome == "finished" and (not self._knows_queues or self._handed_on(seq)):
            self._handed.add(seq)
        else:
            self.fail(seq, "no_report", f"its turn has ended ({end.outcome}{reason})")

    def _left(self, agent: str) -> list[int]:
        """What the agent waited for somebody with, and does no more."""
        handed = self._handed if self._knows_queues else ()
        of_agent = (seq for seq in handed if self._open[seq].worker == agent)
        return [seq for seq in of_agent if not self._handed_on(seq)]

    def _handed_on(self, seq: int) -> bool:
        """Whether the worker waits for a reply, or for somebody else's work, or has yet to take it
        up: it may report when that is done."""
        request, holds = self._open[seq], self.kernel.queues.holds
        worker, reply = request.worker, request.reply
        if request.question and (reply is None or holds(worker, position(reply))):
            return True
        untaken = self._untaken(worker)
        if untaken:
            self._answers[worker] = untaken
            return True
        later = (other for at, other in self._open.items() if at > seq and at not in self._lost)
        return any(other.requester == worker for other in later)

    def heard(self, ended: Iterable[EndedTurn]) -> None:
        """These turns and wakes were ended in their agents' place."""
        for each in ended:
            self.waits.turn_over(each.agent, each.turn)
            own = position(each.turn.rpartition("-")[2])
            for seq in {own, *self._left(each.agent)} & self._open.keys():
                if self._open[seq].worker == each.agent:
                    self.fail(seq, each.code, f"{each.agent} was stopped ({each.reason})")

    def absent(self, participant: str, *, replaced: bool) -> None:
        """The participant is gone, and waits for nobody."""
        self.waits.left(participant)

    def fail(self, seq: int, outcome: str, why: str) -> None:
        """The hub ends the request, now or when the disk takes it. Over already: nothing."""
        if seq in self._open and seq not in self._lost:
            self._lost[seq] = (outcome, why)
            self._post(seq)

    def due(self, now: float) -> float | None:
        for seq in list(self._lost):
            self._post(seq)
        for seq, request in list(self._open.items()):
            if self._ends[seq] <= now:
                asked = request.deadline - request.asked_at
                self.fail(seq, "timeout", f"{asked.total_seconds():.3g} s have passed")
        left = (seq for seq in self._open if seq not in self._lost)
        return min((self._ends[seq] for seq in left), default=None)

    def _again(self) -> None:
        """Look once more in a while at what is to be ended."""
        if self._lost:
            self.timer.at(self.kernel.steady.now() + RETRY_S)

    def _post(self, seq: int) -> None:
        """Say that the request has failed: this wakes who asked."""
        request, (outcome, why) = self._open[seq], self._lost[seq]
        if seq in self._ending or seq in self._saying:
            return  # a report is faster; if the disk refuses it, this is looked at again
        draft = failure(request, outcome, why)
        self._saying.add(seq)
        try:
            later = self.kernel.writes.submit(
                Entry(draft, CallbackWaiter(partial(self._said, seq)))
            )
        except OperationError as error:
            self._said(seq, error)
        except Exception as error:  # a mod may raise anything, and a commit must go on
            log.exception("a mod has failed", request=request.id)
            self._said(seq, OperationError(ErrorCode.INTERNAL, f"a mod has failed: {error}"))
        else:
            if later is not None:
                self.kernel.spawn(later)

    def _end_silently(self, request: Request, outcome: str, error: Exception) -> None:
        """A mod lets nobody say it: the request is over all the same."""
        log.warning("nobody is told how a request ended", request=request.id, error=str(error))
        seq = position(request.id)
        self._ending.add(seq)
        ended = request.model_copy(update={"state": "failed", "outcome": outcome})

        def released() -> None:
            self._ending.discard(seq)
            self._again()

        records: list[Record] = [kept(ended)]
        self.kernel.writes.commit(Commit(records, ended, lambda: self._over(seq), released))

    def _said(self, seq: int, outcome: int | Exception) -> None:
        self._saying.discard(seq)
        if isinstance(outcome, int) or seq not in self._lost:
            return
        if isinstance(outcome, OperationError) and outcome.code != ErrorCode.REQUEST_OVER:
            self._end_silently(self._open[seq], self._lost[seq][0], outcome)
        else:
            self._again()
