"""Limits on the work of agents: budgets, the loop limit, the breaker, approvals."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator, Field

from hubbub.config.units import Id, Section, Span, wrong

__all__ = [
    "ApprovalsConfig",
    "BreakerConfig",
    "Budgets",
    "DailyBudget",
    "DailyBudgets",
    "LoopLimitConfig",
]

_COUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([kM]?)")


def _tokens(value: object) -> object:
    """`200k` as a number of tokens; k is a thousand, as in prices."""
    if not isinstance(value, str):
        return value
    match = _COUNT.fullmatch(value.strip())
    if match is None:
        raise wrong("expected a number of tokens, for example 200000, 200k or 1.5M")
    return int(float(match[1]) * {"": 1, "k": 1_000, "M": 1_000_000}[match[2]])


Tokens = Annotated[int, BeforeValidator(_tokens), Field(ge=1)]
"""A number of tokens: 200000, 200k, 1.5M."""
Dollars = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Budgets(Section):
    """Limits of one interaction: all messages and turns that result from one message of a person.
    An interaction opened by an agent gets half of each. Past a limit, messages are still stored and
    delivered but wake no agent, and a notice says so once. null: no limit."""

    hops: Annotated[int, Field(ge=1, le=1000)] = 8
    """Length of a chain of messages, each caused by the one before."""
    wakes: Annotated[int, Field(ge=1)] | None = 64
    """Turns started by its messages."""
    fan_out: Annotated[int, Field(ge=1)] | None = 8
    """Agents woken by one message of an agent; a person's message has no such limit."""
    agents: Annotated[int, Field(ge=1)] | None = 16
    """Distinct agents it wakes."""
    wall_clock: Span | None = 1800.0
    """Time from its first message, for example 30m; a person's next message opens a new
    interaction."""
    tokens: Tokens | None = None
    """Input and output tokens of its turns together."""
    usd: Dollars | None = None
    """Cost of its turns, by the prices of `models`."""

    def halved(self) -> Budgets:
        """Limits for an interaction opened by an agent: half of each, but at least 1 of a count."""
        half = {
            name: limit / 2 if name in ("wall_clock", "usd") else max(1, limit // 2)
            for name, limit in self
            if limit is not None
        }
        return self.model_copy(update=half)


class DailyBudget(Section):
    """Limits for a day (UTC)."""

    tokens: Tokens | None = None
    """Input and output tokens together."""
    usd: Dollars | None = None
    """Cost by the prices of `models`."""
    wakes: Annotated[int, Field(ge=1)] | None = None
    """Turns started."""


class DailyBudgets(Section):
    """Limits for a day (UTC); an agent's own limits are in its `daily`."""

    network: DailyBudget = DailyBudget()
    """For all agents together."""
    thread: DailyBudget = DailyBudget()
    """For each thread."""
    agent: DailyBudget = DailyBudget()
    """For each agent without its own `daily`."""


class LoopLimitConfig(Section):
    """Stops loops of two agents that only wake each other."""

    wakes: Annotated[int, Field(ge=1)] = 3
    """Wakes between two agents, in both directions together, without a person's message to either
    in between; counted per interaction of a person, or across all opened by agents."""
    within: Span = 300.0
    """Wakes older than this do not count, for example 5m."""
    enabled: bool = True
    """false: only budgets and the breaker stop them."""


class BreakerConfig(Section):
    """Stops a thread in which too many turns start: nothing wakes agents there until a person
    resumes it."""

    turns: Annotated[int, Field(ge=1)] = 60
    """More than this many turns start..."""
    within: Span = 60.0
    """...within this time."""
    enabled: bool = True
    """false: no breaker."""


class ApprovalsConfig(Section):
    """Who approves tool calls that need approval."""

    approvers: list[Id] = []
    """People from `humans`. Default: the owners."""
    expire: Span = 86400.0
    """Time after which an undecided request is denied, for example 1h."""
