"""What work costs and what it may cost: budgets, reservations and sums, as they travel.

Sums are of what turns have recorded. Before each question to a model its estimate is reserved,
until the step is recorded that tells the real figures.
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
"""What is limited; `wall_clock` in seconds, `usd` in US dollars."""
LIMITS: tuple[LimitName, ...] = get_args(LimitName)
Whose = Literal["interaction", "agent", "thread", "network"]
"""Whose budget a limit is of. Those of agents, threads and the network are for a day (UTC)."""


class ReserveBudget(Input):
    turn: Annotated[str, Field(min_length=1, max_length=100)]
    """The turn that is about to ask a model: one of the caller's own."""
    key: Annotated[str, Field(min_length=1, max_length=100)]
    """Names this question within the turn; taking the same reservation again replaces it."""
    tokens: Annotated[int, Field(ge=0, le=10**9)]
    """Estimate: what is read and what may be written, together."""
    usd: Annotated[float, Field(ge=0, le=10**6, allow_inf_nan=False)] = 0.0
    """Estimate; 0 where no price is known."""


class RemainingBudget(Model):
    """A limit of which little is left, or nothing."""

    limit: LimitName
    whose: Whose
    used: float
    """Reservations included."""
    of: float


class Reservation(Model):
    """The question may be asked. Refusals are errors: `budget_exhausted`, `stopped`."""

    turn: str
    key: str
    low: tuple[RemainingBudget, ...] = ()
    """Limits of which less than a fifth is left: their prompts say so."""
    limited: bool = True
    """Whether tokens or money are limited for such a turn. Where they are not, only a stop can
    stand in the way, and a question need not wait for its reservation."""


class Sums(Model):
    """What was spent."""

    turns: int = 0
    wakes: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    usd: float = 0.0


class ReadBudget(Input):
    interaction: Annotated[str, Field(min_length=1, max_length=64)]


class BudgetState(Model):
    """An interaction's budget: what is used and what there is. For those who take part in it."""

    interaction: str
    opened_by: str
    opened_at: AwareDatetime
    limits: dict[LimitName, float]
    """Those that there are."""
    used: dict[LimitName, float]
    """Reservations included; `fan_out` is left out, it is of one message. Of one that is not
    active, `wall_clock` is how long it went on."""
    reached: tuple[LimitName, ...] = ()
    """Limits past which something was refused or woke no agent."""
    sums: Sums = Sums()
    active: bool = True
    """Whether turns of it run or wait."""


class SpentBy(Model):
    name: str
    sums: Sums


class ReadSpending(Input):
    agent: Id | None = None
    """Only what this agent has spent."""
    thread: Annotated[str, Field(min_length=1, max_length=600)] | None = None
    """Only what was spent on turns in this thread."""
    days: Annotated[int, Field(ge=1, le=366)] = 1
    """So many days back, today (UTC) included."""
    turns: bool = False
    """Also by model and by person, from the records of turns. For owners, of everything."""


class SpendingRow(Model):
    """What one agent spent in one thread on one day."""

    day: str
    """YYYY-MM-DD, UTC."""
    agent: str
    thread_id: str
    sums: Sums


class Spending(Model):
    """For owners everything, for others what they take part in."""

    rows: tuple[SpendingRow, ...]
    """Latest day first, the dearest first within a day."""
    total: Sums
    today: tuple[RemainingBudget, ...] = ()
    """The day's limits of the network, and of the agent or thread that was asked for."""
    models: tuple[SpentBy, ...] = ()
    """By model, as its endpoint calls it, the dearest first."""
    people: tuple[SpentBy, ...] = ()
    """By who said what the work was set in motion by."""
