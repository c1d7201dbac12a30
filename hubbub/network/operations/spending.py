"""What work costs: leave to ask a model, and what was spent."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hubbub.errors import OperationError
from hubbub.mods.operation import operation
from hubbub.network.caller import Caller
from hubbub.network.control.ledger import Ledger
from hubbub.network.operations.threads import find_thread
from hubbub.network.operations.turns import turn_account
from hubbub.network.queries import InteractionMessages, SpendingSince, TurnsById, WakesAt
from hubbub.network.stored import StoredSpending
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Message
from hubbub.protocol.spending import (
    BudgetState,
    Lease,
    LeaseTurn,
    Left,
    ReadBudget,
    ReadSpending,
    Spending,
    SpendingRow,
    Sums,
)

__all__ = ["lease_turn", "read_budget", "read_spending"]

COST = 0.1
"""Of the rate limit: an agent at work asks before each question to its model."""


@operation(permission="read", tool=False, cost=COST)
async def lease_turn(call: Caller, args: LeaseTurn) -> Lease:
    """Ask for leave to put a question to a model: what it may cost is reserved until the step is
    recorded that tells the real figures."""
    account = await turn_account(call, args.turn)
    state = call.hub.state
    state.turns.check(args.turn)
    state.halts.refuse(call.participant, state.threads.by_no(account.thread_no).id)
    if account.over:
        raise OperationError(ErrorCode.TURN_OVER, f"turn {args.turn} has ended")
    return call.hub.control.turns.lease(account, args)


@operation(tool=False)
async def read_budget(call: Caller, args: ReadBudget) -> BudgetState:
    """Read an interaction's budget: what there is and what is used. For whoever takes part in it,
    and owners."""
    control = call.hub.control
    ledger = await control.book.load(args.interaction)
    if ledger is None or not _takes_part(call, ledger):
        text = f"there is no interaction {args.interaction} for you"
        raise OperationError(ErrorCode.UNKNOWN_INTERACTION, text)
    active, began, last = await _course(call, ledger)
    age = control.steady() - ledger.opened_at if active else last - began
    return BudgetState(
        interaction=args.interaction,
        opened_by=ledger.opened_by,
        opened_at=datetime.fromtimestamp(began, UTC),
        limits=ledger.budget(),
        used=ledger.used(ledger.opened_at + age),
        reached=tuple(sorted(ledger.reached)),
        sums=ledger.sums(),
        active=active,
    )


def _takes_part(call: Caller, ledger: Ledger) -> bool:
    me = call.participant
    opened_in = call.hub.state.threads.by_no(ledger.thread_no)
    return call.owner or me == ledger.opened_by or me in ledger.agents or call.may_look(opened_in)


async def _course(call: Caller, ledger: Ledger) -> tuple[bool, float, float]:
    """Whether turns of the interaction run, or wakes of it wait for one; and the dates of the first
    and the last thing that happened in it."""
    store, runs = call.hub.store, call.hub.control.turns.runs(ledger)
    stored = await store.read(
        InteractionMessages(ledger.interaction, ledger.seq - 1, call.hub.log.head)
    )
    messages = [Message.model_validate_json(body) for _, body in stored.found]
    found = await store.read(WakesAt([message.seq for message in messages])) if messages else {}
    turns = await store.read(TurnsById([wake.taken for wake in found.values() if wake.taken]))
    waits = any(wake.state in ("pending", "running") for wake in found.values())
    said = [message.sent_at.timestamp() for message in messages]
    ended = (turn.ended_at for turn in turns if turn.ended_at is not None)
    return runs or waits, said[0], max((*said, *ended))


@operation(tool=False)
async def read_spending(call: Caller, args: ReadSpending) -> Spending:
    """Read what was spent by day, agent and thread: everything for an owner, for others what they
    take part in. With the day's limits and what is used of them."""
    hub = call.hub
    thread_no = None if args.thread is None else find_thread(call, args.thread, look=True).no
    await hub.control.saved()
    since = datetime.fromtimestamp(hub.clock.now(), UTC) - timedelta(days=args.days - 1)
    stored = await hub.store.read(SpendingSince(since.strftime("%Y-%m-%d"), args.agent, thread_no))
    mine = [row for row in stored if _may_see(call, row)]
    mine.sort(key=lambda row: (row.usd, row.tokens_in + row.tokens_out), reverse=True)
    mine.sort(key=lambda row: row.day, reverse=True)
    today = hub.control.daily.used(args.agent, thread_no) if hub.control.daily.limited else ()
    return Spending(
        rows=tuple(_row(call, row) for row in mine),
        total=_sums(*mine),
        today=tuple(
            Left(limit=each.limit, whose=each.whose, used=each.used, of=each.of) for each in today
        ),
    )


def _may_see(call: Caller, row: StoredSpending) -> bool:
    if call.owner or row.agent == call.participant:
        return True
    return call.may_look(call.hub.state.threads.by_no(row.thread_no))


def _row(call: Caller, row: StoredSpending) -> SpendingRow:
    thread = call.hub.state.threads.by_no(row.thread_no)
    return SpendingRow(day=row.day, agent=row.agent, thread_id=thread.id, sums=_sums(row))


def _sums(*rows: StoredSpending) -> Sums:
    return Sums(
        turns=sum(row.turns for row in rows),
        wakes=sum(row.wakes for row in rows),
        tokens_in=sum(row.tokens_in for row in rows),
        tokens_out=sum(row.tokens_out for row in rows),
        usd=round(sum(row.usd for row in rows), 9),
    )
