"""The cost of turns: counted steps, and reservations for model calls in progress.

    reserve_budget(key, estimate) --> reserved --> record_step(settles: key) --> counted
                                     |
                                     +--> the turn ends, or its agent leaves: released

Recording a step again under its number replaces it, and only the difference counts. Changes apply
at once, in memory, and are rolled back if the store refuses the step. The stored difference is
always relative to what was stored before, whatever failed in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from weakref import WeakValueDictionary

from hubbub.errors import OperationError
from hubbub.mods.operation import over_limit
from hubbub.network.ports import Store
from hubbub.network.queries import TurnById
from hubbub.network.records import AccountChanged, Record
from hubbub.network.running_turns import EndedTurn
from hubbub.network.services.budgets.account import (
    EPSILON,
    BudgetAccount,
    Charge,
    Cost,
    Estimate,
    TurnAccount,
    Version,
    standing,
)
from hubbub.network.services.budgets.accounts import BudgetAccounts
from hubbub.network.services.budgets.daily import Daily, ReachedLimit
from hubbub.network.stored import StoredSpending
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.spending import LimitName, RemainingBudget, Reservation, ReserveBudget
from hubbub.protocol.turns import Step

__all__ = ["TurnAccounts"]

LOW_FRACTION = 0.2
"""Fraction of a limit below which the remainder counts as low."""
MAX_RESERVATIONS = 256
"""Concurrent reservations of one turn."""

_WARNED: tuple[LimitName, ...] = ("wakes", "wall_clock", "tokens", "usd")
"""Limits that models are warned about when they run low."""


class TurnAccounts:
    """The accounts of running turns."""

    def __init__(
        self,
        store: Store,
        book: BudgetAccounts,
        daily: Daily,
        now: Callable[[], float],
        steady: Callable[[], float],
        reach: Callable[[BudgetAccount, LimitName], None],
        reach_daily: Callable[[ReachedLimit, int], None],
    ):
        """`now` is the time of day, `steady` the clock for the age of interactions. `reach` and
        `reach_daily` are called with limits that refused a reservation."""
        self._store, self._book, self._daily, self._now = store, book, daily, now
        self._steady = steady
        self._reach, self._reach_daily = reach, reach_daily
        self._turns: dict[str, TurnAccount] = {}
        self._loading = WeakValueDictionary[str, asyncio.Lock]()

    def find(self, turn: str) -> TurnAccount | None:
        """The account of a running turn, if it is in memory."""
        return self._turns.get(turn)

    def is_loading(self, turn: str) -> bool:
        """Whether the account of the turn is being loaded."""
        return turn in self._loading

    def loading(self, turn: str) -> asyncio.Lock:
        """A lock to hold while loading the account of a turn, so that an agent's calls keep their
        order however long the store takes for each."""
        return self._loading.setdefault(turn, asyncio.Lock())

    def runs(self, ledger: BudgetAccount) -> bool:
        """Whether a running turn is charged to this account."""
        return any(account.ledger is ledger and account.begun for account in self._turns.values())

    async def load(self, turn: str, agent: str, thread_no: int, interaction: str) -> TurnAccount:
        """Load the account of a turn of this interaction. It stays in memory unless the turn has
        ended.

        Raises `OperationError` and `StoreUnavailable`.
        """
        known = self._turns.get(turn)
        if known is not None:
            return known
        stored = await self._store.read(TurnById(turn))
        ledger = await self._book.load(interaction)
        known = self._turns.get(turn)
        if known is not None:  # loaded by another task meanwhile
            return known
        if ledger is None:
            text = f"no interaction {interaction} exists"
            raise OperationError(ErrorCode.UNKNOWN_INTERACTION, text)
        account = TurnAccount(turn, agent, thread_no, ledger)
        if stored is not None:
            account.begun = True
            for step in map(Step.model_validate_json, stored.steps):
                account.steps[step.n] = Version(_cost(step), None)
        account.has_ended = stored is not None and stored.ended_at is not None
        if not account.has_ended:
            ledger.pins += 1
            self._turns[turn] = account
        return account

    # Counting -----------------------------------------------------------------------------

    def begin(self, account: TurnAccount) -> Charge:
        """Count the turn, once."""
        ledger = account.ledger
        if account.begun:
            return Charge(tuple, lambda: None, ledger)
        account.begun = True
        ledger.turns += 1

        def records() -> Sequence[Record]:
            day = self._daily.today(self._now())
            spent = StoredSpending(day, account.agent, account.thread_no, turns=1)
            return [AccountChanged(ledger.seq, turns=1), spent]

        def failed() -> None:
            account.begun = False
            ledger.turns -= 1

        return Charge(records, failed, ledger)

    def step(self, account: TurnAccount, step: Step, settles: Collection[str]) -> Charge:
        """Count a step, replacing its reservations and any earlier step of the same number."""
        version = Version(_cost(step), account.steps.get(step.n))
        self._spend(account, version.cost.minus(standing(version.before)))
        account.steps[step.n] = version
        settled = {key: account.reservations[key] for key in settles if key in account.reservations}
        for key in settled:
            self._release(account, key)

        def records() -> Sequence[Record]:
            more = version.cost.minus(standing(version.before))
            return self._spent(account, more)

        def failed() -> None:
            counted = standing(account.steps[step.n])
            version.failed = True
            self._spend(account, standing(account.steps[step.n]).minus(counted))
            for key, estimate in settled.items():  # the agent will record the step again
                if not account.has_ended and key not in account.reservations:
                    self._hold(account, key, estimate)

        return Charge(records, failed, account.ledger)

    def _spend(self, account: TurnAccount, cost: Cost) -> None:
        self._daily.today(self._now())
        account.ledger.spend(cost)
        self._daily.spend(account.agent, account.thread_no, cost)

    def _spent(self, account: TurnAccount, cost: Cost) -> Sequence[Record]:
        if cost == Cost():
            return ()
        day = self._daily.today(self._now())
        tokens_in, tokens_out, usd = cost
        moved = AccountChanged(
            account.ledger.seq, tokens_in=tokens_in, tokens_out=tokens_out, usd=usd
        )
        spent = StoredSpending(
            day,
            account.agent,
            account.thread_no,
            tokens_in=tokens_in,
            tokens_out=tokens_out,
            usd=usd,
        )
        return [moved, spent]

    # Reservations -------------------------------------------------------------------------------

    def reserve(self, account: TurnAccount, args: ReserveBudget) -> Reservation:
        """Reserve an estimate. Raises `OperationError` if it exceeds what is left."""
        self._daily.today(self._now())
        before = account.reservations.get(args.key)
        if before is not None:
            self._release(account, args.key)
        elif len(account.reservations) >= MAX_RESERVATIONS:
            raise over_limit(f"a turn has at most {MAX_RESERVATIONS} reservations")
        try:
            self._check(account, args)
        except OperationError:
            if before is not None:
                self._hold(account, args.key, before)
            raise
        self._hold(account, args.key, Estimate(args.tokens, args.usd))
        limits = account.ledger.limits
        return Reservation(
            turn=args.turn,
            key=args.key,
            low=tuple(self._low(account)),
            limited=self._daily.limited or limits.tokens is not None or limits.usd is not None,
        )

    def _check(self, account: TurnAccount, args: ReserveBudget) -> None:
        ledger = account.ledger
        limits = ledger.exceeded_by(args.tokens, args.usd)
        days = self._daily.exceeded_by(account.agent, account.thread_no, args.tokens, args.usd)
        if not limits and not days:
            return
        used, budget = ledger.used(self._steady()), ledger.budget()
        left = [
            RemainingBudget(limit=limit, whose="interaction", used=used[limit], of=budget[limit])
            for limit in limits
        ]
        left += [_remaining(reached) for reached in days]
        for limit in limits:
            self._reach(ledger, limit)
        for reached in days:
            self._reach_daily(reached, account.thread_no)
        reasons = "; ".join(map(_described, left))
        raise OperationError(
            ErrorCode.BUDGET_EXHAUSTED,
            f"too little is left for this model call ({reasons})",
            details={"left": [each.model_dump() for each in left]},
        )

    def _low(self, account: TurnAccount) -> list[RemainingBudget]:
        ledger = account.ledger
        used, budget = ledger.used(self._steady()), ledger.budget()
        remaining = [
            RemainingBudget(limit=limit, whose="interaction", used=used[limit], of=budget[limit])
            for limit in _WARNED
            if limit in used
        ]
        remaining += map(_remaining, self._daily.used(account.agent, account.thread_no))
        return [
            each for each in remaining if each.of - each.used < LOW_FRACTION * each.of - EPSILON
        ]

    def _hold(self, account: TurnAccount, key: str, estimate: Estimate) -> None:
        account.reservations[key] = estimate
        account.ledger.reserved_tokens += estimate.tokens
        account.ledger.reserved_usd += estimate.usd
        self._daily.reserve(account.agent, account.thread_no, *estimate)

    def _release(self, account: TurnAccount, key: str) -> None:
        tokens, usd = account.reservations.pop(key)
        account.ledger.reserved_tokens -= tokens
        account.ledger.reserved_usd = max(0.0, account.ledger.reserved_usd - usd)
        self._daily.reserve(account.agent, account.thread_no, -tokens, -usd)

    # Ends ---------------------------------------------------------------------------------

    def end(self, turn: str) -> None:
        """Release the reservations of a turn that ended."""
        account = self._turns.pop(turn, None)
        if account is not None:
            account.has_ended = True
            account.ledger.pins -= 1
            self._release_all(account)

    def turns_ended(self, ended: Iterable[EndedTurn]) -> None:
        """Release the reservations of turns that were ended on their agents' behalf."""
        for each in ended:
            self.end(each.turn)

    def left(self, agent: str) -> None:
        """Release the reservations of an agent that left."""
        for account in self._turns.values():
            if account.agent == agent:
                self._release_all(account)

    def _release_all(self, account: TurnAccount) -> None:
        for key in list(account.reservations):
            self._release(account, key)


def _cost(step: Step) -> Cost:
    return Cost(step.tokens_in, step.tokens_out, step.cost_usd or 0.0)


def _remaining(reached: ReachedLimit) -> RemainingBudget:
    return RemainingBudget(
        limit=reached.limit, whose=reached.whose, used=reached.used, of=reached.of
    )


def _described(left: RemainingBudget) -> str:
    day = "" if left.whose == "interaction" else " today"
    form = "${:.4g}" if left.limit == "usd" else "{:,.0f}"
    used, of = form.format(left.used), form.format(left.of)
    return f"{left.limit} of the {left.whose}{day}: {used} of {of} used or reserved"
