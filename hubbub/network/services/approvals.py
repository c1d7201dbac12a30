"""Approvals: tool calls of agents that wait for a person's decision.

    pending --> approved --> started        (its call runs, at most once even after a crash)
        |           |
        +-----------+--> cancelled          (its turn ended)
        +--> denied
        +--> expired                        (no one decided in time, which counts as a no)

Every arrow is one commit. The next change waits for the one in flight, so of two people who decide
at the same time, the second learns who was first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple

from pydantic import BaseModel, JsonValue

from hubbub.errors import OperationError
from hubbub.ids import message_id, parse_interaction_id
from hubbub.logs import get_logger
from hubbub.mods.operation import Commit, bad_request, forbidden, operation, over_limit
from hubbub.network.caller import Caller
from hubbub.network.kernel import Kernel
from hubbub.network.queries import ApprovalById, LatestApprovals, TurnById, TurnsById
from hubbub.network.records import ApprovalSaved, Record
from hubbub.network.routing import cause_position
from hubbub.network.running_turns import EndedTurn
from hubbub.network.service import Service
from hubbub.network.services.approval_rules import (
    approval_id,
    approvers_of,
    arguments_hash,
    check_arguments,
    check_same,
    may_decide,
    may_see,
    not_pending,
    shown_to,
)
from hubbub.network.services.turns.ending import Ending
from hubbub.network.session import Session
from hubbub.network.stored import StoreState
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.control import (
    Approval,
    Approvals,
    ApprovalState,
    Approve,
    Deny,
    ListApprovals,
    ReadApproval,
    RequestApproval,
    StartApproved,
)
from hubbub.protocol.frames import Signal
from hubbub.protocol.turns import TurnStart
from hubbub.wording import alternatives

__all__ = ["ApprovalService"]

log = get_logger(__name__)

MAX_PAGE_BYTES = 512 * 1024
"""Bytes of approvals in one answer of `list_approvals`; a single approval can exceed it."""
MAX_SEARCHED = 200
"""Approvals that are searched for those that a person can decide."""
MAX_PENDING = 200
"""Pending approvals of one agent."""
MAX_PENDING_BYTES = 1024 * 1024
"""Their bytes in all. The people who decide get them with `ready`: more could keep them out."""
RETRY_S = 1.0
"""Seconds until a write that the disk refused is retried."""
_UNUSED = frozenset({"pending", "approved"})
"""States of an approval that its turn can still use."""


class _PendingChange(NamedTuple):
    """A change that is being stored."""

    after: Approval
    done: asyncio.Event


class ApprovalService(Service):
    """Holds the approvals that running turns can still use; the store has all."""

    def __init__(self, kernel: Kernel, ending: Ending, stored: StoreState):
        super().__init__(kernel)
        self._ending = ending
        self._held: dict[str, Approval] = {}
        """Approvals not yet started whose turns have not ended, oldest first."""
        self._changing: dict[str, _PendingChange] = {}
        """Approvals with a change that is being stored."""
        self._over: set[str] = set()
        """Approvals to cancel because their turn ended."""
        self._ends: dict[str, float] = {}
        """Expiry of pending approvals, on the steady clock."""
        self.listeners: Sequence[Callable[[], None]] = ()
        """Called after an approval changed."""
        for body in stored.approvals:
            approval = Approval.model_validate_json(body)
            approvers = approvers_of(kernel.file, approval.agent)  # by the current config
            self._hold(approval.model_copy(update={"approvers": approvers}))

    def begin(self) -> None:
        """Resume the approvals of an earlier run of the hub."""
        if self._held:
            self.kernel.spawn(self.kernel.until_readable(self._restore))

    async def _restore(self) -> None:
        held = list(self._held.values())
        turns = await self.store.read(TurnsById(sorted({each.turn for each in held})))
        self.cancel_of([turn.id for turn in turns if turn.end is not None])
        for approval in held:
            if approval.state == "pending" and approval.id not in self._over:
                self._announce(approval)

    # Operations ---------------------------------------------------------------------------

    @operation(permission="write", tool=False, idempotent=True, output=Approval)
    async def request_approval(
        self, call: Caller, args: RequestApproval
    ) -> Approval | Commit[Record]:
        """Ask people whether one of your calls may run. Asking again for the same call of a turn
        returns its current state and notifies no one twice."""
        start = await self._running(call, args.turn)
        id = approval_id(args.turn, args.call)
        before = await self.find(id)
        hash = arguments_hash(args.arguments)
        if before is not None:
            check_same(before, args, hash)
            return shown_to(call, before)
        self.state.turns.check(args.turn)
        now = self.kernel.clock.now()
        asked = Approval(
            id=id,
            agent=call.participant,
            turn=args.turn,
            thread_id=start.thread_id,
            call=args.call,
            tool=args.tool,
            description=args.description,
            arguments=args.arguments,
            hash=hash,
            schema=args.schema_,
            reason=args.reason,
            approvers=approvers_of(self.kernel.file, call.participant),
            asked_at=datetime.fromtimestamp(now, UTC),
            expires_at=datetime.fromtimestamp(now + self.kernel.config.approvals.expire, UTC),
            state="pending",
        )
        self._check_room(asked)
        return self._change(asked, asked)

    def _check_room(self, asked: Approval) -> None:
        """Raises `OperationError` if the agent has too many or too large pending approvals."""
        arriving = (change.after for change in self._changing.values())
        pending = {each.id: each for each in (*self.pending(), *arriving)}.values()
        own = [e for e in pending if e.agent == asked.agent and e.state == "pending"]
        if len(own) >= MAX_PENDING:
            raise over_limit(f"you have {MAX_PENDING} pending approvals already")
        if sum(len(each.model_dump_json()) for each in (*own, asked)) > MAX_PENDING_BYTES:
            raise over_limit(f"your pending approvals have more than {MAX_PENDING_BYTES} bytes")

    async def _running(self, call: Caller, turn: str) -> TurnStart:
        """The start of one of the caller's running turns. Raises `OperationError`."""
        cause_position(turn, call.participant)  # or it is not a turn's id
        stored = await self.store.read(TurnById(turn))
        if call.kind != "agent" or stored is None or stored.agent != call.participant:
            text = f"{turn[:100]!r} is not one of your turns, or it has not begun"
            raise OperationError(ErrorCode.UNKNOWN_TURN, text)
        if stored.end is not None:
            raise OperationError(ErrorCode.TURN_OVER, f"turn {turn} has ended")
        return TurnStart.model_validate_json(stored.start)

    @operation(tool=False)
    async def read_approval(self, call: Caller, args: ReadApproval) -> Approval:
        """Read one approval: the tool, its arguments, who can decide, and its state."""
        return shown_to(call, await self.visible(call, args.id))

    @operation(tool=False)
    async def list_approvals(self, call: Caller, args: ListApprovals) -> Approvals:
        """List approvals, newest first: those you can decide or asked for; all of them for an
        owner."""
        page: list[Approval] = []
        left, room = MAX_PAGE_BYTES, args.limit
        candidates, more = await self._candidates(call, args)
        for approval in candidates:
            if not may_see(call, approval):
                continue
            left -= len(approval.model_dump_json())
            if room == 0 or (page and left < 0):
                more = True
                break
            page.append(shown_to(call, approval))
            room -= 1
        return Approvals(approvals=tuple(page), more=more)

    async def _candidates(self, call: Caller, args: ListApprovals) -> tuple[list[Approval], bool]:
        """Approvals, newest first, and whether there are more than were searched."""
        agent = call.participant if call.kind == "agent" else args.agent
        if args.agent is not None and agent != args.agent:
            return [], False
        if args.state == "pending":
            waiting = reversed(self.pending())
            return [each for each in waiting if agent in (None, each.agent)], False
        sees_all = call.owner or call.kind == "agent"
        most = args.limit + 1 if sees_all else MAX_SEARCHED
        bodies = await self.store.read(LatestApprovals(agent, most))
        more = not sees_all and len(bodies) == most
        return [Approval.model_validate_json(body) for body in bodies], more

    @operation(permission="write", tool=False, output=Approval)
    async def approve(self, call: Caller, args: Approve) -> Commit[Record]:
        """Let a tool call run, as requested or with other arguments. For its approvers."""
        approval = await self.visible(call, args.id)
        if args.hash is not None and not approval.hash.startswith(args.hash):
            raise bad_request(
                f"hash: approval {approval.id} has other arguments than those you reviewed"
            )
        final = approval.arguments if args.arguments is None else args.arguments
        if (
            args.arguments is not None
            and approval.schema_ is not None
            and may_decide(call, approval)
        ):
            await asyncio.to_thread(check_arguments, approval.schema_, args.arguments)
            approval = await self.visible(call, args.id)
        return self._decide(call, approval, "approved", args.reason, final)

    @operation(permission="write", tool=False, output=Approval)
    async def deny(self, call: Caller, args: Deny) -> Commit[Record]:
        """Refuse a tool call; its agent receives the reason. For its approvers."""
        approval = await self.visible(call, args.id)
        return self._decide(call, approval, "denied", args.reason)

    @operation(permission="write", tool=False, output=Approval)
    async def start_approved(self, call: Caller, args: StartApproved) -> Commit[Record]:
        """Record that your approved call starts now, just before running it. An approval can be
        used once: after a crash in the middle of the call, it does not run again."""
        approval = await self.visible(call, args.id)
        if call.kind != "agent" or approval.agent != call.participant:
            raise forbidden(f"only {approval.agent} itself can start its calls")
        await self._ending.wait_until_idle()  # its turn may just be being stopped
        approval = await self.visible(call, args.id)
        self.state.turns.check(approval.turn)
        if approval.state != "approved" or approval.id in self._over:
            raise not_pending(approval)
        after = approval.model_copy(update={"state": "started", "started_at": self._now()})
        return self._change(after, after)

    # Lookups ------------------------------------------------------------------------------

    def waiting_of(self, turn: str) -> tuple[str, ...]:
        """Ids of the approvals that the turn waits for."""
        return tuple(each.id for each in self.pending() if each.turn == turn)

    def parked(self, agent: str) -> Collection[str]:
        """The agent's turns that wait for a person, and occupy no slot meanwhile."""
        if not self._held:
            return ()
        return {each.turn for each in self.pending() if each.agent == agent}

    def pending(self) -> Sequence[Approval]:
        """The pending approvals, oldest first."""
        return [each for each in self._held.values() if each.state == "pending"]

    async def find(self, id: str) -> Approval | None:
        """The approval once no change of it is in flight; None if there is none.

        It cannot change until the caller awaits something.
        """
        while True:
            while (moving := self._changing.get(id)) is not None:
                await moving.done.wait()
            if id in self._held:
                return self._held[id]
            body = await self.store.read(ApprovalById(id))
            if id not in self._changing and id not in self._held:
                return None if body is None else Approval.model_validate_json(body)

    async def visible(self, caller: Caller, id: str) -> Approval:
        """As `known`. Raises `OperationError` unless the caller can read it."""
        approval = await self.find(id)
        if approval is None or not may_see(caller, approval):
            text = f"no approval {id[:100]!r} is visible to you; see list_approvals"
            raise OperationError(ErrorCode.UNKNOWN_APPROVAL, text)
        return approval

    # Decisions and cancellations ----------------------------------------------------------

    def _decide(
        self,
        caller: Caller,
        approval: Approval,
        state: ApprovalState,
        reason: str,
        final: dict[str, JsonValue] | None = None,
    ) -> Commit[Record]:
        """A person's decision about an approval fresh from `known`. Raises `OperationError`."""
        if not may_decide(caller, approval):
            deciders = alternatives(approval.approvers) or "the owners"
            raise forbidden(f"only {deciders} can decide this, never an agent")
        if approval.state == "pending" and self._has_passed(approval, self.kernel.steady.now()):
            self.timer.look()
            approval = approval.model_copy(update={"state": "expired"})
        if approval.id in self._over:
            approval = approval.model_copy(update={"state": "cancelled"})
        if approval.state != "pending":
            raise not_pending(approval)
        decided = {
            "state": state,
            "decided_by": caller.participant,
            "decided_at": self._now(),
            "verdict": reason,
            "final": final,
        }
        after = approval.model_copy(update=decided)
        return self._change(after, shown_to(caller, after))

    def cancel_of(self, turns: Iterable[str]) -> None:
        """Cancel the approvals of turns that have ended."""
        over = set(turns)
        arriving = (moving.after for moving in self._changing.values())
        for approval in (*self._held.values(), *arriving):
            if approval.turn in over:
                self._over.add(approval.id)
                self._expire_or_cancel(approval.id)

    def turns_ended(self, ended: Iterable[EndedTurn]) -> None:
        """Cancel the approvals of turns that were ended on their agents' behalf."""
        self.cancel_of(each.turn for each in ended)

    # Expiry -------------------------------------------------------------------------------

    def due(self, now: float) -> float | None:
        for id in list(self._held):
            self._expire_or_cancel(id, now)
        return min((self._ends[each.id] for each in self.pending()), default=None)

    def _expire_or_cancel(self, id: str, now: float = 0.0) -> None:
        """Cancel or expire the approval if that is due and no other change is in flight."""
        approval = self._held.get(id)
        if approval is None or id in self._changing:
            return
        if id in self._over and approval.state not in _UNUSED:
            self._forget(id)
        elif id in self._over:
            self._change_in_background(approval.model_copy(update={"state": "cancelled"}))
        elif approval.state == "pending" and self._has_passed(approval, now):
            self._change_in_background(approval.model_copy(update={"state": "expired"}))

    def _has_passed(self, approval: Approval, now: float) -> bool:
        return self._ends[approval.id] <= now

    def _change_in_background(self, after: Approval) -> None:
        def done(answer: BaseModel | Exception) -> None:
            if isinstance(answer, Exception):
                log.warning("an approval was not stored", approval=after.id, error=str(answer))

        self.kernel.writes.commit(self._change(after, after), done)

    # Changes ------------------------------------------------------------------------------

    def _change(self, after: Approval, answer: Approval) -> Commit[Record]:
        """A commit that changes an approval to `after`; other changes wait for it."""
        moved = asyncio.Event()
        self._changing[after.id] = _PendingChange(after, moved)

        def applied() -> None:
            self._hold(after)
            self._signal_all(after)
            if after.state == "pending":
                self._announce(after)
            for listener in self.listeners:
                listener()

        def released() -> None:
            del self._changing[after.id]
            moved.set()
            if after.id not in self._held:
                self._forget(after.id)
            elif self._held[after.id] is after:
                self._expire_or_cancel(after.id)
            else:  # the disk refused it
                self.timer.at(self.kernel.steady.now() + RETRY_S)

        return Commit([_approval_record(after)], answer, applied, released)

    def _hold(self, approval: Approval) -> None:
        if approval.state in ("started", "cancelled"):
            self._forget(approval.id)
            return
        self._held[approval.id] = approval
        if approval.state == "pending" and approval.id not in self._ends:
            until, since = approval.expires_at.timestamp(), approval.asked_at.timestamp()
            self._ends[approval.id] = self.kernel.steady.moment(until, since)
            self.timer.at(self._ends[approval.id])

    def _forget(self, id: str) -> None:
        self._held.pop(id, None)
        self._ends.pop(id, None)
        self._over.discard(id)

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self.kernel.clock.now(), UTC)

    # Signals and notices ------------------------------------------------------------------

    def _signal_all(self, approval: Approval) -> None:
        """Signal the approval's state to its approvers, owners, and its agent."""
        for session in self.kernel.fanout.all():
            _signal(session, approval)

    def joined(self, session: Session) -> None:
        """Signal pending approvals to a person, and decisions made meanwhile to an agent."""
        caller = session.caller
        if caller is None:
            return
        for approval in self._held.values():
            if approval.state == "pending":
                concerned = may_decide(caller, approval)
            else:
                concerned = approval.agent == caller.participant
            if concerned:
                _signal(session, approval)

    def _announce(self, approval: Approval) -> None:
        """Post one notice in the turn's thread, without the arguments, as others read it too."""
        approvers = approval.approvers or self.kernel.file.owners
        names = alternatives(approvers) or "an owner"
        text = f"{approval.agent} asks to run {approval.tool}. Needs approval by {names}."
        details: dict[str, JsonValue] = {
            "code": "approval",
            "approval": approval.id,
            "agent": approval.agent,
            "turn": approval.turn,
        }
        # If a mod rejects the notice, the approvers still get the signal.
        once, about = f"approval:{approval.id}", {**details, "tool": approval.tool}
        self.kernel.writes.notice(approval.thread_id, text, about, once, to=approvers)
        tell = partial(self._tell_asker, approval, names, details)
        self.kernel.spawn(self.kernel.until_readable(tell))

    async def _tell_asker(
        self, approval: Approval, names: str, details: Mapping[str, JsonValue]
    ) -> None:
        """Post a notice where a person asked for work that was delegated to the agent, unless that
        person knows of its approvals anyway. Raises `StoreUnavailable`."""
        seq, _ = cause_position(approval.turn, approval.agent)
        work = await self.kernel.writes.causes.ancestor(seq)
        opened = parse_interaction_id(work.interaction) if work is not None else None
        question = await self.kernel.writes.causes.ancestor(opened or 0)
        thread = self.state.threads.by_no(question.thread_no) if question is not None else None
        if opened is None or question is None or thread is None:
            return
        person, place = (
            self.state.get(question.sender),
            self.state.threads.ensure(approval.thread_id),
        )
        if person is None or person.kind != "human" or self.state.may_read(place, person.id):
            return
        if person.id not in (*approval.approvers, *self.kernel.file.owners):
            text = f"{approval.agent}, who works on this, waits for approval by {names}."
            about = {**details, "message": message_id(opened)}
            once = f"approval:{approval.turn}"[:200]
            self.kernel.writes.notice(thread.id, text, about, once, to=[person.id])


def _signal(session: Session, approval: Approval) -> None:
    """Signal the approval's state, if the session's participant can read it.

    Not sent as ephemeral, as it resumes an agent's parked turn.
    """
    caller = session.caller
    if caller is not None and may_see(caller, approval):
        data = shown_to(caller, approval).model_dump(mode="json", exclude_none=True)
        signal = Signal(type="approval", sender="hub", data=data)
        session.write(signal.encoded())


def _approval_record(approval: Approval) -> ApprovalSaved:
    return ApprovalSaved(
        approval.id,
        approval.agent,
        approval.turn,
        approval.state,
        approval.expires_at.timestamp(),
        approval.model_dump_json(exclude={"may_decide"}, exclude_none=True),
    )
