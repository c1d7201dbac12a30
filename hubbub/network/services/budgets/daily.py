"""Daily budgets: the accounts of the network, of threads and of agents. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import NamedTuple

from hubbub.config.models import DailyBudget, DailyBudgets
from hubbub.network.services.budgets.account import EPSILON, Cost, exceeds
from hubbub.network.stored import StoredSpending
from hubbub.network.wakes import Reason
from hubbub.protocol.spending import LimitName, Whose

__all__ = ["Daily", "DailyAccount", "ReachedLimit", "day_of"]

DAY_S = 86400
_REASONS: dict[Whose, Reason] = {
    "network": Reason.DAILY_NETWORK,
    "thread": Reason.DAILY_THREAD,
    "agent": Reason.DAILY_AGENT,
}


def day_of(now: float) -> str:
    """The day (UTC) of a time, as YYYY-MM-DD."""
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d")


class DailyAccount:
    """The usage of one day."""

    __slots__ = ("reserved_tokens", "reserved_usd", "tokens", "usd", "wakes")

    def __init__(self) -> None:
        self.wakes = self.tokens = self.reserved_tokens = 0
        self.usd = self.reserved_usd = 0.0

    def add(self, wakes: int, cost: Cost) -> None:
        self.wakes = max(0, self.wakes + wakes)
        self.tokens = max(0, self.tokens + cost.tokens)
        self.usd = max(0.0, self.usd + cost.usd)

    @property
    def reserves(self) -> bool:
        """Whether anything is reserved."""
        return self.reserved_tokens > 0 or self.reserved_usd > EPSILON

    def used(self, limits: DailyBudget) -> Iterator[tuple[LimitName, float, float]]:
        """Each limit with its usage, including reservations, and its value."""
        if limits.tokens is not None:
            yield "tokens", self.tokens + self.reserved_tokens, limits.tokens
        if limits.usd is not None:
            yield "usd", max(0.0, self.usd + self.reserved_usd), limits.usd
        if limits.wakes is not None:
            yield "wakes", self.wakes, limits.wakes


class ReachedLimit(NamedTuple):
    """A daily limit that is reached."""

    whose: Whose
    target: str
    """The agent's id or the thread's number; empty for the network."""
    limit: LimitName
    used: float
    of: float

    @property
    def reason(self) -> Reason:
        return _REASONS[self.whose]


class _Day:
    """The accounts of one day."""

    def __init__(self) -> None:
        self.network = DailyAccount()
        self.threads = defaultdict[int, DailyAccount](DailyAccount)
        self.agents = defaultdict[str, DailyAccount](DailyAccount)

    def of(self, agent: str, thread_no: int) -> Sequence[DailyAccount]:
        return self.network, self.threads[thread_no], self.agents[agent]

    def take_reservations(self, other: _Day) -> None:
        """Move what is reserved on the other day to this one."""
        _take(self.network, other.network)
        for no, account in other.threads.items():
            if account.reserves:
                _take(self.threads[no], account)
        for agent, account in other.agents.items():
            if account.reserves:
                _take(self.agents[agent], account)


def _take(account: DailyAccount, other: DailyAccount) -> None:
    account.reserved_tokens, other.reserved_tokens = other.reserved_tokens, 0
    account.reserved_usd, other.reserved_usd = other.reserved_usd, 0.0


class Daily:
    """Today's accounts. `agents` has the agents with a `daily` of their own.

    Those of another day stay when the clock is set, as it can be set back.
    """

    def __init__(self, budgets: DailyBudgets, agents: Mapping[str, DailyBudget], now: float):
        self._budgets, self._own = budgets, dict(agents)
        self._days: dict[str, _Day] = {}
        self._starts(now)

    def set(self, agent: str, budget: DailyBudget | None) -> None:
        """Set the agent's own budget; None for the default of all agents."""
        self._own.pop(agent, None)
        if budget is not None:
            self._own[agent] = budget
        self.__dict__.pop("limited", None)
        self.__dict__.pop("limits_wakes", None)

    @cached_property
    def limited(self) -> bool:
        """Whether any daily limit is set; otherwise nothing is counted."""
        return any(budget != DailyBudget() for budget in self._every())

    @cached_property
    def limits_wakes(self) -> bool:
        return any(budget.wakes is not None for budget in self._every())

    def _every(self) -> Iterator[DailyBudget]:
        budgets = self._budgets
        yield from (budgets.network, budgets.thread, budgets.agent, *self._own.values())

    def _starts(self, now: float) -> None:
        self._until = (now // DAY_S + 1) * DAY_S
        self.day = day_of(now)
        self._today = self._days.setdefault(self.day, _Day())

    def restore(self, rows: Iterable[StoredSpending]) -> None:
        """Count the stored spending from today on, in place of what was counted before. Later days
        have some if the clock is behind."""
        before, self._days = self._today, {}
        self._starts(self._until - DAY_S)
        self._today.take_reservations(before)
        for row in rows:
            if row.day >= self.day and self.limited:
                day = self._days.setdefault(row.day, _Day())
                cost = Cost(row.tokens_in, row.tokens_out, row.usd)
                for account in day.of(row.agent, row.thread_no):
                    account.add(row.wakes, cost)

    def today(self, now: float) -> str:
        """The current day. A new day has new accounts, with the open reservations."""
        if not self._until - DAY_S <= now < self._until:
            before, midnight = self._today, self._until <= now < self._until + DAY_S
            self._starts(now)
            self._today.take_reservations(before)
            if midnight:
                self._days = {day: it for day, it in self._days.items() if day >= self.day}
        return self.day

    def _accounts(
        self, agent: str, thread_no: int
    ) -> Iterator[tuple[Whose, str, DailyAccount, DailyBudget]]:
        budgets = self._budgets
        network, thread, own = self._today.of(agent, thread_no)
        yield "network", "", network, budgets.network
        yield "thread", str(thread_no), thread, budgets.thread
        yield "agent", agent, own, self._own.get(agent) or budgets.agent

    # Wakes --------------------------------------------------------------------------------

    def refuses(self, agent: str, thread_no: int) -> ReachedLimit | None:
        """The reached limit, if any, that prevents another wake."""
        if not self.limited:
            return None
        for whose, target, account, limits in self._accounts(agent, thread_no):
            for limit, used, of in account.used(limits):
                if used >= of - EPSILON:
                    return ReachedLimit(whose, target, limit, used, of)
        return None

    def wake(self, agent: str, thread_no: int, count: int = 1) -> None:
        """Count wakes; a negative number rolls them back."""
        if self.limited:
            for account in self._today.of(agent, thread_no):
                account.add(count, Cost())

    # Tokens and money ---------------------------------------------------------------------

    def spend(self, agent: str, thread_no: int, cost: Cost) -> None:
        if self.limited:
            for account in self._today.of(agent, thread_no):
                account.add(0, cost)

    def exceeded_by(
        self, agent: str, thread_no: int, tokens: int, usd: float
    ) -> list[ReachedLimit]:
        """The limits that a model call with this estimate would exceed."""
        if not self.limited:
            return []
        estimate: dict[LimitName, float] = {"tokens": tokens, "usd": usd}
        return [
            ReachedLimit(whose, target, limit, used, of)
            for whose, target, account, limits in self._accounts(agent, thread_no)
            for limit, used, of in account.used(limits)
            if limit in estimate and exceeds(used + estimate[limit], of)
        ]

    def reserve(self, agent: str, thread_no: int, tokens: int, usd: float) -> None:
        """Reserve for a model call; negative numbers release a reservation."""
        if self.limited:
            for account in self._today.of(agent, thread_no):
                account.reserved_tokens = max(0, account.reserved_tokens + tokens)
                account.reserved_usd = max(0.0, account.reserved_usd + usd)

    def used(self, agent: str | None, thread_no: int | None) -> list[ReachedLimit]:
        """The usage of the daily limits of the network, this agent and this thread."""
        used: list[ReachedLimit] = []
        for whose, target, account, limits in self._accounts(agent or "", thread_no or 0):
            if (whose == "agent" and agent is None) or (whose == "thread" and thread_no is None):
                continue
            used += [ReachedLimit(whose, target, *each) for each in account.used(limits)]
        return used
