"""Daily budgets: the accounts of the network, of threads and of agents. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
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


class Daily:
    """Today's accounts. `agents` has the agents with a `daily` of their own."""

    def __init__(self, budgets: DailyBudgets, agents: Mapping[str, DailyBudget], now: float):
        self._budgets, self._own = budgets, dict(agents)
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
        self._network = DailyAccount()
        self._threads = defaultdict[int, DailyAccount](DailyAccount)
        self._agents = defaultdict[str, DailyAccount](DailyAccount)

    def restore(self, rows: Iterable[StoredSpending]) -> None:
        """Count today's stored spending, in place of what was counted before."""
        self._restart(self._until - DAY_S)
        for row in rows:
            if row.day == self.day:
                self.wake(row.agent, row.thread_no, row.wakes)
                cost = Cost(row.tokens_in, row.tokens_out, row.usd)
                self.spend(row.agent, row.thread_no, cost)

    def today(self, now: float) -> str:
        """The current day. A new day resets all accounts except their reservations."""
        if not self._until - DAY_S <= now < self._until:
            self._restart(now)
        return self.day

    def _restart(self, now: float) -> None:
        """Reset all accounts except their reservations."""
        network, threads, agents = self._network, self._threads, self._agents
        self._starts(now)
        self._network = _reserved(network)
        for no, account in threads.items():
            if account.reserves:
                self._threads[no] = _reserved(account)
        for agent, account in agents.items():
            if account.reserves:
                self._agents[agent] = _reserved(account)

    def _accounts(
        self, agent: str, thread_no: int
    ) -> Iterator[tuple[Whose, str, DailyAccount, DailyBudget]]:
        budgets = self._budgets
        yield "network", "", self._network, budgets.network
        yield "thread", str(thread_no), self._threads[thread_no], budgets.thread
        own = self._own.get(agent) or budgets.agent
        yield "agent", agent, self._agents[agent], own

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
            for _, _, account, _ in self._accounts(agent, thread_no):
                account.wakes = max(0, account.wakes + count)

    # Tokens and money ---------------------------------------------------------------------

    def spend(self, agent: str, thread_no: int, cost: Cost) -> None:
        if self.limited:
            for _, _, account, _ in self._accounts(agent, thread_no):
                account.tokens = max(0, account.tokens + cost.tokens)
                account.usd = max(0.0, account.usd + cost.usd)

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
            for _, _, account, _ in self._accounts(agent, thread_no):
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


def _reserved(before: DailyAccount) -> DailyAccount:
    account = DailyAccount()
    account.reserved_tokens, account.reserved_usd = before.reserved_tokens, before.reserved_usd
    return account
