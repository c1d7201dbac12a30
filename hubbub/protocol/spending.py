"""Budgets, reservations and spending, as wire data.

Sums are of recorded steps. Before each model call its estimated cost is reserved, until the step
with the actual cost is recorded.
"""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import AwareDatetime, Field

from hubbub.protocol.messages import Id, Model
from hubbub.protocol.operations import Input

__all__ = [
    "LIMITS",
    "BudgetState",
    "LimitName",
    "ReadBudget",
    "ReadSpending",
    "RemainingBudget",
    "Reservation",
    "ReserveBudget",
    "Spending",
    "SpendingRow",
    "SpentBy",
    "Sums",
]

LimitName = Literal["hops", "wakes", "fan_out", "agents", "wall_clock", "tokens", "usd"]
"""The kinds of limits; `wall_clock` in seconds, `usd` in US dollars."""
LIMITS: tuple[LimitName, ...] = get_args(LimitName)
Whose = Literal["interaction", "agent", "thread", "network"]
"""The owner of a limit. Limits of agents, threads and the network are per day (UTC)."""


class ReserveBudget(Input):
    turn: Annotated[str, Field(min_length=1, max_length=100)]
    """The caller's turn that is about to call a model."""
    key: Annotated[str, Field(min_length=1, max_length=100)]
    """Identifies the model call within the turn; reserving with the same key replaces it."""
    tokens: Annotated[int, Field(ge=0, le=10**9)]
    """Estimated tokens, input and output together."""
    usd: Annotated[float, Field(ge=0, le=10**6, allow_inf_nan=False)] = 0.0
    """Estimated cost; 0 if no price is known."""


class RemainingBudget(Model):
    """A limit with little or nothing left."""

    limit: LimitName
    whose: Whose
    used: float
    """Including reservations."""
    of: float


class Reservation(Model):
    """The model call is allowed. Refusals are errors: `budget_exhausted`, `stopped`."""

    turn: str
    key: str
    low: tuple[RemainingBudget, ...] = ()
    """Limits with less than a fifth left, for the prompt."""
    limited: bool = True
    """Whether tokens or money are limited for such a turn. If not, only a stop can refuse a model
    call, and it need not wait for its reservation."""


class Sums(Model):
    """Total spending."""

    turns: int = 0
    wakes: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    usd: float = 0.0


class ReadBudget(Input):
    interaction: Annotated[str, Field(min_length=1, max_length=64)]


class BudgetState(Model):
    """An interaction's budget and usage, for its participants."""

    interaction: str
    opened_by: str
    opened_at: AwareDatetime
    limits: dict[LimitName, float]
    """The limits that are set."""
    used: dict[LimitName, float]
    """Including reservations, without `fan_out`, which applies per message. If the interaction is
    not active, `wall_clock` is its total duration."""
    reached: tuple[LimitName, ...] = ()
    """Limits that refused something."""
    sums: Sums = Sums()
    active: bool = True
    """Whether it has running turns or pending wakes."""


class SpentBy(Model):
    name: str
    sums: Sums


class ReadSpending(Input):
    agent: Id | None = None
    """Only spending of this agent."""
    thread: Annotated[str, Field(min_length=1, max_length=600)] | None = None
    """Only spending in this thread."""
    days: Annotated[int, Field(ge=1, le=366)] = 1
    """Number of days, including today (UTC)."""
    turns: bool = False
    """Also by model and by person, from the records of all turns; for owners."""


class SpendingRow(Model):
    """The spending of one agent in one thread on one day."""

    day: str
    """YYYY-MM-DD, UTC."""
    agent: str
    thread_id: str
    sums: Sums


class Spending(Model):
    """All spending for owners, for others only what they take part in."""

    rows: tuple[SpendingRow, ...]
    """Latest day first, most expensive first within a day."""
    total: Sums
    today: tuple[RemainingBudget, ...] = ()
    """Daily limits of the network, and of the requested agent or thread."""
    models: tuple[SpentBy, ...] = ()
    """By model name at its endpoint, most expensive first."""
    people: tuple[SpentBy, ...] = ()
    """By the person whose message opened the interaction."""
