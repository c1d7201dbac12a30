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
from typing import TYPE_CHECKING, NamedTuple

from pydantic import BaseModel, JsonValue

from hubbub.errors import OperationError, StoreUnavailable
from hubbub.logs import get_logger
from hubbub.network.caller import Caller, Recording
from hubbub.network.people.approval_news import announce, tell
from hubbub.network.people.running import Ended
from hubbub.network.people.verdicts import (
    approvers_of,
    as_told,
    may_decide,
    may_see,
    not_pending,
)
from hubbub.network.queries import ApprovalById, TurnsById
from hubbub.network.records import ApprovalKept
from hubbub.network.stored import StoredTurn
from hubbub.network.timer import Timer
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.control import Approval, ApprovalState

if TYPE_CHECKING:
    from hubbub.network.hub import Hub
    from hubbub.network.session import Session

__all__ = ["Approvals"]

log = get_logger(__name__)

MOST_PENDING = 200
"""Approvals of one agent that wait at the same time."""
RETRY_S = 1.0
"""Seconds until what the disk has refused is tried again."""
_UNUSED = frozenset({"pending", "approved"})
"""States of what its turn may still come to use."""


class _Move(NamedTuple):
    """A change that is on its way to the store."""

    after: Approval
    done: asyncio.Event


class Approvals:
    """Keeps the approvals that turns which are not over may still use; the store has all."""

    def __init__(self, hub: Hub, stored: Sequence[bytes]):
        self._hub = hub
        self._held: dict[str, Approval] = {}
        """Not started, and their turns are not over; oldest first."""
        self._moving: dict[str, _Move] = {}
        """Those of which a change is on its way to the store."""
        self._over: set[str] = set()
        """Those whose turn is over and that are not yet cancelled."""
        self._ends: dict[str, float] = {}
        """When those expire that wait for a person, by the steady clock."""
        self._timer = Timer(hub.steady, self._due)
        for body in stored:
            approval = Approval.model_validate_json(body)
            approvers = approvers_of(hub.file, approval.agent)  # as the config says now
            self._hold(approval.model_copy(update={"approvers": approvers}))

    def begin(self) -> None:
        """Bring to an end what an earlier run of the hub began."""
        if self._held:
            self._hub.spawn(self._restore())

    async def _restore(self) -> None:
        held = list(self._held.values())
        turns = await self._turns(sorted({each.turn for each in held}))
        self.cancel_of([turn.id for turn in turns if turn.end is not None])
        for approval in held:
            if approval.state == "pending" and approval.id not in self._over:
                announce(self._hub, approval)

    async def _turns(self, ids: Sequence[str]) -> Sequence[StoredTurn]:
        """The turns as the store has them, as soon as it can be read."""
        while True:
            try:
                return await self._hub.store.read(TurnsById(ids))
            except StoreUnavailable:
                await asyncio.sleep(RETRY_S)

    def stop(self) -> None:
        """Let none expire any more."""
        self._timer.stop()

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
            body = await self._hub.store.read(ApprovalById(id))
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

    def ask(self, approval: Approval) -> Recording:
        """A new one, which `known` has said is not there yet. Raises `OperationError`."""
        if sum(each.agent == approval.agent for each in self.pending()) >= MOST_PENDING:
            text = f"{MOST_PENDING} approvals of yours wait already"
            raise OperationError(ErrorCode.LIMIT, text)
        approvers = approvers_of(self._hub.file, approval.agent)
        asked = approval.model_copy(update={"approvers": approvers})
        return self._move(asked, asked)

    def decide(
        self,
        caller: Caller,
        approval: Approval,
        state: ApprovalState,
        reason: str,
        final: dict[str, JsonValue] | None = None,
    ) -> Recording:
        """A person's word about an approval that is just `known`. Raises `OperationError`."""
        if not may_decide(caller, approval):
            whom = ", ".join(approval.approvers) or "the owners"
            raise OperationError(ErrorCode.FORBIDDEN, f"{whom} decide about this, and never agents")
        if approval.state == "pending" and self._has_passed(approval, self._hub.steady.now()):
            self._timer.look()
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

    def start(self, approval: Approval) -> Recording:
        """Its agent runs the call now. Raises `OperationError` unless it is approved and unused."""
        if approval.state != "approved" or approval.id in self._over:
            raise not_pending(approval)
        after = approval.model_copy(update={"state": "started", "started_at": self._now()})
        return self._move(after, after)

    def cancel_of(self, turns: Iterable[str]) -> None:
        """These turns are over: nothing that they asked for runs any more."""
        over = set(turns)
        arriving = (moving.after for moving in self._moving.values())
        for approval in (*self._held.values(), *arriving):
            if approval.turn in over:
                self._over.add(approval.id)
                self._lapse(approval.id)

    def heard(self, ended: Iterable[Ended]) -> None:
        """These turns were ended in their agents' place."""
        self.cancel_of(each.turn for each in ended)

    # What becomes of it without anybody ---------------------------------------------------

    def _due(self, now: float) -> float | None:
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

        self._hub.writes.record(self._move(after, after), done)

    # Changes ------------------------------------------------------------------------------

    def _move(self, after: Approval, answer: Approval) -> Recording:
        """The commit that brings an approval to `after`; nothing else may come between."""
        moved = asyncio.Event()
        self._moving[after.id] = _Move(after, moved)

        def settled() -> None:
            del self._moving[after.id]
            moved.set()

        def committed() -> None:
            settled()
            self._hold(after)
            self._tell(after)
            if after.state == "pending":
                announce(self._hub, after)
            self._lapse(after.id)

        def failed() -> None:
            settled()
            if after.id not in self._held:
                self._forget(after.id)
            self._again()

        return Recording(lambda head: [_kept(after)], answer, committed, failed)

    def _again(self) -> None:
        """Look once more in a while at what is due."""
        self._timer.at(self._hub.steady.now() + RETRY_S)

    def _hold(self, approval: Approval) -> None:
        if approval.state in ("started", "cancelled"):
            self._forget(approval.id)
            return
        self._held[approval.id] = approval
        if approval.state == "pending" and approval.id not in self._ends:
            until, since = approval.expires_at.timestamp(), approval.asked_at.timestamp()
            self._ends[approval.id] = self._hub.steady.moment(until, since)
            self._timer.at(self._ends[approval.id])

    def _forget(self, id: str) -> None:
        self._held.pop(id, None)
        self._ends.pop(id, None)
        self._over.discard(id)

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._hub.clock.now(), UTC)

    # Telling ------------------------------------------------------------------------------

    def _tell(self, approval: Approval) -> None:
        """Signal how it stands to those who may decide, owners, and its agent."""
        for session in self._hub.fanout.all():
            tell(session, approval)

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
                tell(session, approval)


def _kept(approval: Approval) -> ApprovalKept:
    return ApprovalKept(
        approval.id,
        approval.agent,
        approval.turn,
        approval.state,
        approval.expires_at.timestamp(),
        approval.model_dump_json(exclude={"may_decide"}, exclude_none=True),
    )
