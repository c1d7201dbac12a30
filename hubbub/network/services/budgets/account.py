"""Accounts of interactions and turns: limits, usage and reservations. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from hubbub.config.models import Budgets
from hubbub.ids import interaction_id
from hubbub.network.records import Record
from hubbub.protocol.spending import LIMITS, LimitName, Sums

__all__ = [
    "EPSILON",
    "BudgetAccount",
    "Charge",
    "Cost",
    "Estimate",
    "TurnAccount",
    "Version",
    "exceeds",
    "standing",
]

EPSILON = 1e-9
"""Tolerance for comparing sums of money (US dollars), which are floats."""


class Cost(NamedTuple):
    """The cost of a step, or the difference to its previous cost."""

    tokens_in: int = 0
    tokens_out: int = 0
    usd: float = 0.0

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out

    def minus(self, other: Cost) -> Cost:
        return Cost(
            self.tokens_in - other.tokens_in,
            self.tokens_out - other.tokens_out,
            self.usd - other.usd,
        )


def exceeds(sum: float, limit: float | None) -> bool:
    """Whether a sum exceeds a limit."""
    return limit is not None and sum > limit + EPSILON


class BudgetAccount:
    """The account of one interaction, in memory. Changes are stored with the records that cause
    them, and rolled back if the store refuses those.
    """

    __slots__ = (
        "agents",
        "last_words",
        "limits",
        "opened_at",
        "opened_by",
        "opened_by_person",
        "pins",
        "reached",
        "reserved_tokens",
        "reserved_usd",
        "saved",
        "seq",
        "thread_no",
        "tokens_in",
        "tokens_out",
        "turns",
        "usd",
        "wakes",
    )

    def __init__(
        self,
        seq: int,
        opened_by: str,
        thread_no: int,
        opened_at: float,
        limits: Budgets,
        *,
        person: bool,
    ):
        self.seq = seq
        """Position of the opening message; 0 until it has one."""
        self.opened_by, self.opened_by_person = opened_by, person
        self.thread_no = thread_no
        """The thread of the opening message."""
        self.opened_at, self.limits = opened_at, limits
        self.wakes = self.turns = self.tokens_in = self.tokens_out = 0
        self.usd = 0.0
        self.agents: dict[str, int] = {}
        """How often it woke each agent, or the agent posted in it unprompted."""
        self.last_words: set[str] = set()
        """Observers that used up the one message allowed past a limit."""
        self.reached: set[LimitName] = set()
        self.saved: set[str] = set()
        """Its agents and reached limits that are stored."""
        self.reserved_tokens, self.reserved_usd = 0, 0.0
        self.pins = 0
        """Number of messages in flight and running turns that need this object in memory."""

    @property
    def interaction(self) -> str:
        return interaction_id(self.seq)

    @property
    def of_person(self) -> int:
        """Its opening position if a person opened it, otherwise 0."""
        return self.seq if self.opened_by_person else 0

    @property
    def tokens(self) -> int:
        """Used and reserved."""
        return self.tokens_in + self.tokens_out + self.reserved_tokens

    @property
    def dollars(self) -> float:
        """Used and reserved."""
        return self.usd + self.reserved_usd

    def sums(self) -> Sums:
        return Sums(
            turns=self.turns,
            wakes=self.wakes,
            tokens_in=self.tokens_in,
            tokens_out=self.tokens_out,
            usd=max(0.0, round(self.usd, 9)),
        )

    # Wakes --------------------------------------------------------------------------------

    def barrier(self, now: float) -> LimitName | None:
        """The reached limit, if any, that prevents all further wakes of the interaction."""
        limits = self.limits
        if exceeds(now - self.opened_at, limits.wall_clock):
            return "wall_clock"
        if limits.tokens is not None and self.tokens >= limits.tokens:
            return "tokens"
        if limits.usd is not None and self.dollars >= limits.usd - EPSILON:
            return "usd"
        return None

    def refuses(self, agent: str) -> LimitName | None:
        """The reached limit, if any, that prevents another wake of this agent."""
        limits = self.limits
        if limits.wakes is not None and self.wakes >= limits.wakes:
            return "wakes"
        if limits.agents is None or agent in self.agents or len(self.agents) < limits.agents:
            return None
        return "agents"

    def wake(self, agent: str) -> None:
        """Count a wake of the agent."""
        self.wakes += 1
        self.agents[agent] = self.agents.get(agent, 0) + 1

    def unwake(self, agent: str) -> None:
        """Roll back a wake."""
        self.wakes -= 1
        self.agents[agent] -= 1
        if not self.agents[agent]:
            del self.agents[agent]

    # Tokens and money ---------------------------------------------------------------------

    def spend(self, cost: Cost) -> None:
        self.tokens_in += cost.tokens_in
        self.tokens_out += cost.tokens_out
        self.usd += cost.usd

    def exceeded_by(self, tokens: int, usd: float) -> tuple[LimitName, ...]:
        """The limits that a model call with this estimate would exceed."""
        exceeded: list[LimitName] = []
        if exceeds(self.tokens + tokens, self.limits.tokens):
            exceeded.append("tokens")
        if exceeds(self.dollars + usd, self.limits.usd):
            exceeded.append("usd")
        return tuple(exceeded)

    def used(self, now: float) -> dict[LimitName, float]:
        """Usage of each limit that is set, including reservations, except `hops` and `fan_out`."""
        limits = self.limits
        all_used: Iterable[tuple[LimitName, float | None, float]] = (
            ("wakes", limits.wakes, self.wakes),
            ("agents", limits.agents, len(self.agents)),
            ("wall_clock", limits.wall_clock, round(max(0.0, now - self.opened_at), 3)),
            ("tokens", limits.tokens, self.tokens),
            ("usd", limits.usd, max(0.0, round(self.dollars, 9))),
        )
        return {name: float(used) for name, limit, used in all_used if limit is not None}

    def budget(self) -> dict[LimitName, float]:
        """The limits that are set."""
        limits = ((name, getattr(self.limits, name)) for name in LIMITS)
        return {name: float(limit) for name, limit in limits if limit is not None}


# The account of one turn: counted steps, reservations, changes in flight.


class Estimate(NamedTuple):
    tokens: int
    usd: float


class Version:
    """One recorded version of a step, and the version it replaced."""

    __slots__ = ("before", "cost", "failed")

    def __init__(self, cost: Cost, before: Version | None):
        self.cost, self.before, self.failed = cost, before, False


def standing(version: Version | None) -> Cost:
    """The cost of a step's latest version that the store has not refused."""
    while version is not None and version.failed:
        version = version.before
    return version.cost if version is not None else Cost()


class TurnAccount:
    """A running turn: the account it is charged to, and its counted steps."""

    __slots__ = (
        "agent",
        "begun",
        "has_ended",
        "ledger",
        "reservations",
        "steps",
        "thread_no",
        "turn",
    )

    def __init__(self, turn: str, agent: str, thread_no: int, ledger: BudgetAccount):
        self.turn, self.agent, self.thread_no, self.ledger = turn, agent, thread_no, ledger
        self.steps: dict[int, Version] = {}
        self.reservations: dict[str, Estimate] = {}
        self.begun = False
        """Whether the turn has been counted."""
        self.has_ended = False


class Charge:
    """A change of a turn's account in flight: its records, and its rollback on failure."""

    def __init__(
        self,
        records: Callable[[], Sequence[Record]],
        failed: Callable[[], None],
        ledger: BudgetAccount,
    ):
        self._records, self._failed, self._ledger = records, failed, ledger
        self._durable = False
        ledger.pins += 1

    def records(self) -> Sequence[Record]:
        """The records; call it when the batch is formed."""
        return self._records()

    def applied(self) -> None:
        self._durable = True

    def released(self) -> None:
        self._ledger.pins -= 1
        if not self._durable:
            self._failed()
