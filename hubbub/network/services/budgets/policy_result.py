"""What was decided about one message, so that it can be written with it or taken back."""

from __future__ import annotations

from hubbub.network.records import LedgerMoved, Record
from hubbub.network.services.budgets.account import BudgetAccount
from hubbub.network.services.budgets.daily import Reached
from hubbub.network.stored import StoredSpending
from hubbub.network.wakes import Reason
from hubbub.protocol.spending import LimitName

__all__ = ["PolicyResult"]


class PolicyResult:
    """Of a message that moves an account, or that was kept from waking somebody."""

    __slots__ = (
        "breathless",
        "counted",
        "day",
        "days",
        "kept",
        "last_word",
        "ledger",
        "opens",
        "owed",
        "reached",
        "thread_no",
        "woken",
    )

    def __init__(self, ledger: BudgetAccount, thread_no: int, *, opens: bool):
        self.ledger = ledger
        self.opens = opens
        """Whether the message opens the interaction: its deliveries then tell whom it woke."""
        self.thread_no = thread_no
        self.woken: list[str] = []
        """Agents that the message wakes."""
        self.counted: list[str] = []
        """Agents with whose wakes, or whose own word, the interaction was charged."""
        self.day: str | None = None
        """The day to which the wakes are written with the message; None: they are written later."""
        self.kept: dict[str, Reason] = {}
        """Agents that the message would have woken, and why it does not."""
        self.owed: list[str] = []
        """Those of them whose reply was required."""
        self.last_word = False
        """Whether it is the one word that an observer has past a limit."""
        self.reached: list[LimitName] = []
        """Limits of the interaction that stood in the way."""
        self.breathless: list[str] = []
        """Agents that the loop limiter lets the sender wake no more, and that is to be told."""
        self.days: list[Reached] = []
        """Limits of the day that stood in the way."""

    @property
    def moves(self) -> bool:
        """Whether the interaction's account is another after it."""
        return bool(self.counted or self.reached)

    def records(self, seq: int) -> list[Record]:
        """What is written with the message at `seq`."""
        made: list[Record] = []
        saved = self.ledger.saved
        counted = () if self.opens else self.counted
        reached = tuple(limit for limit in self.reached if limit not in saved)
        if counted or reached:
            agents = tuple(agent for agent in dict.fromkeys(counted) if agent not in saved)
            opened = seq if self.opens else self.ledger.seq
            made.append(LedgerMoved(opened, len(counted), agents=agents, reached=reached))
        if self.day is not None:
            made += [
                StoredSpending(self.day, agent, self.thread_no, wakes=1) for agent in self.woken
            ]
        return made
