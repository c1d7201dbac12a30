"""Approvals: calls of agents' tools that wait for a person's word.

    pending --> approved --> started        (its call runs: once, whatever dies)
        |           |
        +-----------+--> cancelled          (its turn is over)
        +--> denied
        +--> expired                        (nobody decided in time: that is a no)

Every arrow is one commit. What is on its way to the store is waited for by whoever wants to go on
from there, so that two people who decide at the same time are told who was first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from pydantic import BaseModel, JsonValue

from hubbub.errors import OperationError
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
    as_told,
    check_arguments,
    check_same,
    may_decide,
    may_see,
    not_pending,
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

__all__ = ["ApprovalService"]

log = get_logger(__name__)

MOST_TOLD = 512 * 1024
"""Bytes of arguments in one answer of `list_approvals`; a single one may have more."""
MOST_LOOKED = 200
"""Approvals among which those are searched that a person may decide."""
MOST_PENDING = 200
"""Approvals of one agent that wait at the same time."""
RETRY_S = 1.0
"""Seconds until what the disk has refused is tried again."""
_UNUSED = frozenset({"pending", "approved"})
"""States of what its turn may still come to use."""


class _PendingChange(NamedTuple):
    """A change that is on its way to the store."""

    after: Approval
    done: asyncio.Event


class ApprovalService(Service):
    """Keeps the approvals that turns which are not over may still use; the store has all."""

    def __init__(self, kernel: Kernel, ending: Ending, stored: StoreState):
        super().__init__(kernel)
        self._ending = ending
        self._held: dict[str, Approval] = {}
        """Not started, and their turns are not over; oldest first."""
        self._moving: dict[str, _PendingChange] = {}
        """Those of which a change is on its way to the store."""
        self._over: set[str] = set()
        """Those whose turn is over and that are not yet cancelled."""
        self._ends: dict[str, float] = {}
        """When those expire that wait for a person, by the steady clock."""
        for body in stored.approvals:
            approval = Approval.model_validate_json(body)
            approvers = approvers_of(kernel.file, approval.agent)  # as the config says now
            self._hold(approval.model_copy(update={"approvers": approvers}))

    def begin(self) -> None:
        """Bring to an end what an earlier run of the hub began."""
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
        """Ask people whether a call of yours may run. Asking again for the same call of a turn
        tells how it stands, and asks nobody twice."""
        start = await self._running(call, args.turn)
        id = approval_id(args.turn, args.call)
        before = await self.known(id)
        hash = arguments_hash(args.arguments)
        if before is not None:
            check_same(before, args, hash)
            return as_told(call, before)
        self.state.turns.check(args.turn)
        if sum(each.agent == call.participant for each in self.pending()) >= MOST_PENDING:
            raise over_limit(f"{MOST_PENDING} approvals of yours wait already")
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
        return self._move(asked, asked)

    async def _running(self, call: Caller, turn: str) -> TurnStart:
        """The start of a turn of the caller's that runs. Raises `OperationError`."""
        _seq, named = cause_position(turn, call.participant)
        stored = await self.store.read(TurnById(turn)) if named is not None else None
        if call.kind != "agent" or stored is None or stored.agent != call.participant:
            text = f"{turn[:100]!r} is no turn of yours that has begun"
            raise OperationError(ErrorCode.UNKNOWN_TURN, text)
        if stored.end is not None:
            raise OperationError(ErrorCode.TURN_OVER, f"turn {turn} has ended")
        return TurnStart.model_validate_json(stored.start)

    @operation(tool=False)
    async def read_approval(self, call: Caller, args: ReadApproval) -> Approval:
        """Read one approval: the tool, its arguments, who may decide, how it stands."""
        return as_told(call, await self.visible(call, args.id))

    @operation(tool=False)
    async def list_approvals(self, call: Caller, args: ListApprovals) -> Approvals:
        """List approvals, newest first: those that you may decide or have asked for, all for an
        owner."""
        found: list[Approval] = []
        left, room = MOST_TOLD, args.limit
        candidates, more = await self._candidates(call, args)
        for approval in candidates:
            if not may_see(call, approval):
                continue
            left -= len(approval.model_dump_json())
            if room == 0 or (found and left < 0):
                more = True
                break
            found.append(as_told(call, approval))
            room -= 1
        return Approvals(approvals=tuple(found), more=more)

    async def _candidates(self, call: Caller, args: ListApprovals) -> tuple[list[Approval], bool]:
        """Approvals newest first, and whether there are more of them than could be looked at."""
        agent = call.participant if call.kind == "agent" else args.agent
        if args.agent is not None and agent != args.agent:
            return [], False
        if args.state == "pending":
            waiting = reversed(self.pending())
            return [each for each in waiting if agent in (None, each.agent)], False
        sees_all = call.owner or call.kind == "agent"
        most = args.limit + 1 if sees_all else MOST_LOOKED
        bodies = await self.store.read(LatestApprovals(agent, most))
        more = not sees_all and len(bodies) == most
        return [Approval.model_validate_json(body) for body in bodies], more

    @operation(permission="write", tool=False, output=Approval)
    async def approve(self, call: Caller, args: Approve) -> Commit[Record]:
        """Let a tool call run, as it was asked for or with other arguments. For people who may
        decide about it."""
        approval = await self.visible(call, args.id)
        if args.hash is not None and not approval.hash.startswith(args.hash):
            raise bad_request(
                f"hash: approval {approval.id} is for other arguments than those you have looked at"
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
        """Refuse a tool call; its agent is told the reason. For people who may decide about it."""
        approval = await self.visible(call, args.id)
        return self._decide(call, approval, "denied", args.reason)

    @operation(permission="write", tool=False, output=Approval)
    async def start_approved(self, call: Caller, args: StartApproved) -> Commit[Record]:
        """Say that an approved call of yours runs now, before it does. An approval can be used
        once: whoever has died in the middle of the call does not run it again."""
        approval = await self.visible(call, args.id)
        if call.kind != "agent" or approval.agent != call.participant:
            raise forbidden(f"only {approval.agent} itself starts its calls")
        await self._ending.quiet()  # what is just being stopped may be its turn
        approval = await self.visible(call, args.id)
        self.state.turns.check(approval.turn)
        if approval.state != "approved" or approval.id in self._over:
            raise not_pending(approval)
        after = approval.model_copy(update={"state": "started", "started_at": self._now()})
        return self._move(after, after)

    # Looking ------------------------------------------------------------------------------

    def waiting_of(self, turn: str) -> tuple[str, ...]:
        """Ids of the approvals that the turn waits for."""
        return tuple(each.id for each in self.pending() if each.turn == turn)

    def parked(self, agent: str) -> Collection[str]:
        """The turns of the agent that wait for a person, and hold nothing meanwhile."""
        if not self._held:
            return ()
        return {each.turn for each in self.pending() if each.agent == agent}

    def pending(self) -> Sequence[Approval]:
        """Those that wait for a person, oldest first."""
        return [each for each in self._held.values() if each.state == "pending"]

    async def known(self, id: str) -> Approval | None:
        """The approval as it stands when no change of it is under way; None: there is none.

        It stands like that until the caller awaits something.
        """
        while True:
            while (moving := self._moving.get(id)) is not None:
                await moving.done.wait()
            if id in self._held:
                return self._held[id]
            body = await self.store.read(ApprovalById(id))
            if id not in self._moving and id not in self._held:
                return None if body is None else Approval.model_validate_json(body)

    async def visible(self, caller: Caller, id: str) -> Approval:
        """As `known`, if the caller may read it. Raises `OperationError`."""
        approval = await self.known(id)
        if approval is None or not may_see(caller, approval):
            text = f"there is no approval {id[:100]!r} for you; see list_approvals"
            raise OperationError(ErrorCode.UNKNOWN_APPROVAL, text)
        return approval

    # What people and agents do ------------------------------------------------------------

    def _decide(
        self,
        caller: Caller,
        approval: Approval,
        state: ApprovalState,
        reason: str,
        final: dict[str, JsonValue] | None = None,
    ) -> Commit[Record]:
        """A person's word about an approval that is just `known`. Raises `OperationError`."""
        if not may_decide(caller, approval):
            whom = ", ".join(approval.approvers) or "the owners"
            raise forbidden(f"{whom} decide about this, and never agents")
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
        return self._move(after, as_told(caller, after))

    def cancel_of(self, turns: Iterable[str]) -> None:
        """These turns are over: nothing that they asked for runs any more."""
        over = set(turns)
        arriving = (moving.after for moving in self._moving.values())
        for approval in (*self._held.values(), *arriving):
            if approval.turn in over:
                self._over.add(approval.id)
                self._lapse(approval.id)

    def heard(self, ended: Iterable[EndedTurn]) -> None:
        """These turns were ended in their agents' place."""
        self.cancel_of(each.turn for each in ended)

    # What becomes of it without anybody ---------------------------------------------------

    def due(self, now: float) -> float | None:
        for id in list(self._held):
            self._lapse(id, now)
        return min((self._ends[each.id] for each in self.pending()), default=None)

    def _lapse(self, id: str, now: float = 0.0) -> None:
        """Cancel or expire the approval if that is due and nothing else is under way with it."""
        approval = self._held.get(id)
        if approval is None or id in self._moving:
            return
        if id in self._over and approval.state not in _UNUSED:
            self._forget(id)
        elif id in self._over:
            self._move_alone(approval.model_copy(update={"state": "cancelled"}))
        elif approval.state == "pending" and self._has_passed(approval, now):
            self._move_alone(approval.model_copy(update={"state": "expired"}))

    def _has_passed(self, approval: Approval, now: float) -> bool:
        return self._ends[approval.id] <= now

    def _move_alone(self, after: Approval) -> None:
        def done(answer: BaseModel | Exception) -> None:
            if isinstance(answer, Exception):
                log.warning("an approval could not be kept", approval=after.id, error=str(answer))

        self.kernel.writes.commit(self._move(after, after), done)

    # Changes ------------------------------------------------------------------------------

    def _move(self, after: Approval, answer: Approval) -> Commit[Record]:
        """The commit that brings an approval to `after`; nothing else may come between."""
        moved = asyncio.Event()
        self._moving[after.id] = _PendingChange(after, moved)

        def applied() -> None:
            self._hold(after)
            self._tell_all(after)
            if after.state == "pending":
                self._announce(after)

        def released() -> None:
            del self._moving[after.id]
            moved.set()
            if after.id not in self._held:
                self._forget(after.id)
            elif self._held[after.id] is after:
                self._lapse(after.id)
            else:  # the disk has refused it
                self.timer.at(self.kernel.steady.now() + RETRY_S)

        return Commit([_kept(after)], answer, applied, released)

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

    # Telling ------------------------------------------------------------------------------

    def _tell_all(self, approval: Approval) -> None:
        """Signal how it stands to those who may decide, owners, and its agent."""
        for session in self.kernel.fanout.all():
            _tell(session, approval)

    def joined(self, session: Session) -> None:
        """A person learns what waits for it; an agent, what has been decided while it was away."""
        caller = session.caller
        if caller is None:
            return
        for approval in self._held.values():
            if approval.state == "pending":
                concerned = may_decide(caller, approval)
            else:
                concerned = approval.agent == caller.participant
            if concerned:
                _tell(session, approval)

    def _announce(self, approval: Approval) -> None:
        """One notice where the turn works. It says nothing of the arguments: others read it too."""
        whom = approval.approvers or self.kernel.file.owners
        who = " or ".join(whom) if whom else "an owner"
        text = f"{approval.agent} asks to run {approval.tool}. Needs approval by {who}."
        details: dict[str, JsonValue] = {
            "code": "approval",
            "approval": approval.id,
            "agent": approval.agent,
            "turn": approval.turn,
            "tool": approval.tool,
        }
        # Should a mod let nobody say it, who may decide is told all the same.
        once = f"approval:{approval.id}"
        self.kernel.writes.notice(approval.thread_id, text, details, once, to=whom)


def _tell(session: Session, approval: Approval) -> None:
    """Signal how it stands, if the session's participant may read it.

    Not sent as ephemeral: an agent whose turn is parked goes on by it.
    """
    caller = session.caller
    if caller is not None and may_see(caller, approval):
        data = as_told(caller, approval).model_dump(mode="json", exclude_none=True)
        signal = Signal(type="approval", sender="hub", data=data)
        session.write(signal.encoded())


def _kept(approval: Approval) -> ApprovalSaved:
    return ApprovalSaved(
        approval.id,
        approval.agent,
        approval.turn,
        approval.state,
        approval.expires_at.timestamp(),
        approval.model_dump_json(exclude={"may_decide"}, exclude_none=True),
    )
