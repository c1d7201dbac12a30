"""What agents may spend before a person must say more: limits, the loop limit, the breaker."""

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
    """`200k` as a number of tokens: a thousand to the k, as prices have it."""
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
    """Limits of one interaction: all that one message of a person sets in motion. What an agent
    opens by itself has half of each. Past a limit messages are kept and delivered, and wake nobody;
    a notice says so once. null: no such limit."""

    hops: Annotated[int, Field(ge=1, le=1000)] = 8
    """Messages in a row, each because of the one before."""
    wakes: Annotated[int, Field(ge=1)] | None = 64
    """Turns that its messages start."""
    fan_out: Annotated[int, Field(ge=1)] | None = 8
    """Agents that one message of an agent wakes; a person's message wakes as many as it names."""
    agents: Annotated[int, Field(ge=1)] | None = 16
    """Different agents that it wakes."""
    wall_clock: Span | None = 1800.0
    """From its first message, for example 30m; a new message of a person opens another one."""
    tokens: Tokens | None = None
    """That its turns read and write, together."""
    usd: Dollars | None = None
    """That its turns cost, by the prices of `models`."""

    def halved(self) -> Budgets:
        """For what nobody but agents has set in motion: half of each, at least 1 of what counts."""
        half = {
            name: limit / 2 if name in ("wall_clock", "usd") else max(1, limit // 2)
            for name, limit in self
            if limit is not None
        }
        return self.model_copy(update=half)


class DailyBudget(Section):
    """Limits for a day (UTC)."""

    tokens: Tokens | None = None
    """Read and written together."""
    usd: Dollars | None = None
    """By the prices of `models`."""
    wakes: Annotated[int, Field(ge=1)] | None = None
    """Turns that are started."""


class DailyBudgets(Section):
    """Limits for a day (UTC); those of single agents stand with the agent, as `daily`."""

    network: DailyBudget = DailyBudget()
    """Of all agents together."""
    thread: DailyBudget = DailyBudget()
    """Of each thread."""
    agent: DailyBudget = DailyBudget()
    """Of each agent that has no `daily` of its own."""


class LoopLimitConfig(Section):
    """Two agents that only wake each other are let run out of breath."""

    wakes: Annotated[int, Field(ge=1)] = 3
    """Wakes between two agents, in both directions together, in one interaction of a person, or in
    all that agents have opened; with no person's message to either of them between."""
    within: Span = 300.0
    """For example 5m: older ones no longer count."""
    enabled: bool = True
    """false: only budgets and the breaker hold them."""


class BreakerConfig(Section):
    """A thread in which very many turns begin is stopped: nothing wakes anybody there until a
    person releases it."""

    turns: Annotated[int, Field(ge=1)] = 60
    """More than this begin..."""
    within: Span = 60.0
    """...in this time."""
    enabled: bool = True
    """false: there is no breaker."""


class ApprovalsConfig(Section):
    """Who says whether a tool call may run for which a person must be asked."""

    approvers: list[Id] = []
    """People from `humans`; left out: the owners."""
    expire: Span = 86400.0
    """What is not decided by then is refused, for example 1h."""
