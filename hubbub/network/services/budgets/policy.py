"""Checks the decisions of `wakes.py`, recipient by recipient, against stops and budgets.

The loop limiter stops two agents that only wake each other:

    a wakes b, b wakes a, a wakes b     three wakes, the pair's limit
    b wakes a                           refused until the oldest wake has expired
    a person wakes a (or b)             the count restarts

Each interaction that a person opened is counted separately, so that agents working for many people
at once do not run into the limit.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from hubbub.config.models import LoopLimitConfig
from hubbub.errors import OperationError
from hubbub.ids import parse_message_id
from hubbub.network.log import Entry
from hubbub.network.queues import Queues
from hubbub.network.records import AccountChanged, Record
from hubbub.network.services.budgets.account import BudgetAccount
from hubbub.network.services.budgets.daily import Daily, ReachedLimit
from hubbub.network.standing_stops import StandingStops
from hubbub.network.stored import StoredSpending
from hubbub.network.wakes import Decision, Reason
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.spending import LimitName

__all__ = ["LoopLimiter", "Policies", "PolicyResult", "may_loop"]

_REASONS: dict[LimitName, Reason] = {
    "hops": Reason.HOP_LIMIT,
    "wakes": Reason.BUDGET_WAKES,
    "fan_out": Reason.BUDGET_FAN_OUT,
    "agents": Reason.BUDGET_AGENTS,
    "wall_clock": Reason.BUDGET_WALL_CLOCK,
    "tokens": Reason.BUDGET_TOKENS,
    "usd": Reason.BUDGET_USD,
}


def may_loop(entry: Entry, ledger: BudgetAccount | None) -> bool:
    """Whether the loop limiter counts the entry's wakes. Not counted are questions that block their
    sender and the answers to them, as cycles of those are refused anyway, and tasks of an
    interaction that a person opened, as each ends once and the budget limits them."""
    draft = entry.draft
    if draft.sender_kind != "agent" or entry.by_person or draft.awaits or entry.awaited:
        return False
    mark = None if draft.purpose is None else draft.request
    if mark is not None and mark.kind == "task":
        return ledger is None or not ledger.opened_by_person
    return mark is None or not mark.ends


class Policies(NamedTuple):
    """The policies that check a wake, in order; the interaction's account comes second."""

    stops: StandingStops
    daily: Daily
    limiter: LoopLimiter
    queues: Queues


class PolicyResult:
    """The check of one message: its effect on the accounts, and the wakes that were refused."""

    def __init__(
        self, policies: Policies, entry: Entry, ledger: BudgetAccount, now: float, monotonic: float
    ):
        self._policies, self._entry = policies, entry
        self._draft, self._thread = entry.draft, entry.thread
        mark = entry.draft.request
        self._person, self._ends = entry.by_person, mark is not None and mark.ends
        self._monotonic = monotonic
        self._barrier = None if self._person else ledger.barrier(now)
        """A reached limit that prevents all wakes by the message."""
        self.ledger, self.opens = ledger, entry.interaction is None
        """`opens`: the message opens the interaction, so its deliveries record its wakes."""
        self.woken: list[str] = []
        """Agents that the message wakes."""
        self.counted: list[str] = []
        """Agents whose wakes or unprompted messages were charged to the interaction."""
        self.day: str | None = None
        """The day for wakes that are stored with the message; None if they are stored later."""
        self.kept: dict[str, Reason] = {}
        """Agents that the rules would have woken, and why they are not."""
        self.owed: list[str] = []
        """Those of them whose reply was required."""
        self.last_word = False
        """Whether it is the one message that an observer is allowed past a limit."""
        self.reached: list[LimitName] = []
        """Limits of the interaction that refused a wake."""
        self.looping: list[str] = []
        """Agents whose wakes the loop limiter refused, and that need a notice."""
        self.days: list[ReachedLimit] = []
        """Daily limits that refused a wake."""

    @property
    def moves(self) -> bool:
        """Whether it changes the interaction's account."""
        return bool(self.counted or self.reached)

    def records(self, seq: int) -> list[Record]:
        """The records written with the message at `seq`."""
        records: list[Record] = []
        saved = self.ledger.saved
        counted = () if self.opens else self.counted
        reached = tuple(limit for limit in self.reached if limit not in saved)
        if counted or reached:
            agents = tuple(agent for agent in dict.fromkeys(counted) if agent not in saved)
            opened = seq if self.opens else self.ledger.seq
            records.append(AccountChanged(opened, len(counted), agents=agents, reached=reached))
        if self.day is not None:
            records += [
                StoredSpending(self.day, agent, self._thread.no, wakes=1) for agent in self.woken
            ]
        return records

    def check_all(self, decisions: list[Decision]) -> None:
        """Withdraw refused wakes from the decisions, in place, and count the rest."""
        if not (self._person or self._ends or self.opens):
            self._charge_observer()
        for index, decision in enumerate(decisions):
            if decision.reply is not None:
                decisions[index] = self._check_wake(decision)
            elif decision.reason is Reason.HOP_LIMIT:
                self._reach("hops")

    def _reach(self, limit: LimitName) -> None:
        if limit not in self.reached:
            self.reached.append(limit)

    def _charge_observer(self) -> None:
        """Charge a message of an agent that was not woken in the interaction (an observer) as a
        wake: its first one, and each reaction to a message that did not wake it."""
        ledger, draft = self.ledger, self._draft
        speaker = draft.sender_id
        if draft.sender_kind == "system":
            return
        overhears = self._reacts_unwoken()
        if not overhears and (speaker == ledger.opened_by or speaker in ledger.agents):
            return
        if self._barrier is None:
            self._barrier = ledger.refuses(speaker)
        if self._barrier is None:
            self._charge(speaker)
        elif overhears:
            self._allow_last_message(speaker, self._barrier)

    def _reacts_unwoken(self) -> bool:
        """Whether the cause is a message that did not wake the speaker."""
        seq = parse_message_id(self._draft.cause_id or "")
        return seq is not None and not self._policies.queues.holds(self._draft.sender_id, seq)

    def _allow_last_message(self, speaker: str, limit: LimitName) -> None:
        """Allow an observer one message past a limit. Other observers would answer it without being
        woken, without end, so a second one raises `OperationError`."""
        ledger = self.ledger
        if speaker not in ledger.last_words:
            ledger.last_words.add(speaker)
            self.last_word = True
            self._reach(limit)
            return
        raise OperationError(
            ErrorCode.BUDGET_EXHAUSTED,
            f"interaction {ledger.interaction} is past its limit ({limit}), and nothing in it woke "
            "you; a person can continue it with a new message",
            details={"interaction_id": ledger.interaction, "limit": limit},
        )

    def _charge(self, agent: str) -> None:
        self.ledger.wake(agent)
        self.counted.append(agent)

    def _check_wake(self, decision: Decision) -> Decision:
        agent, _, reply = decision
        reason = self._refusal(agent)
        if reason is None:
            self._count(agent)
            return decision
        self.kept[agent] = reason
        if reply == "required":
            self.owed.append(agent)
        return Decision(agent, reason, None)

    def _count(self, agent: str) -> None:
        daily, thread_no = self._policies.daily, self._thread.no
        if not self._ends:
            self._charge(agent)
        self.woken.append(agent)
        daily.wake(agent, thread_no)
        if daily.limits_wakes:
            self.day = daily.day
        if self._person:
            self._policies.limiter.person(agent)

    def _refusal(self, agent: str) -> Reason | None:
        stops, daily, limiter, *_ = self._policies
        stopped = stops.of(agent, self._thread.id) if stops.standing else None
        if stops.standing and stopped is None and self._draft.timer_of is not None:
            stopped = stops.of(self._draft.timer_of, self._thread.id)  # its timers stop, too
        if stopped is not None:
            return stopped
        limit = None if self._person else self._limit(agent)
        if limit is not None:
            self._reach(limit)
            return _REASONS[limit]
        spent = daily.refuses(agent, self._thread.no)
        if spent is not None:
            self.days.append(spent)
            return spent.reason
        if not may_loop(self._entry, self.ledger):
            return None
        sender, now, of = self._draft.sender_id, self._monotonic, self.ledger.of_person
        if limiter.wake(sender, agent, now, of):
            return None
        if limiter.notice_due(sender, agent, now, of):
            self.looping.append(agent)
        return Reason.LOOP_LIMIT

    def _limit(self, agent: str) -> LimitName | None:
        """The interaction's limit, if any, that prevents the message from waking the agent."""
        if self._ends:
            return self._barrier
        limit = self._barrier or self.ledger.refuses(agent)
        most = self.ledger.limits.fan_out
        if limit is None and most is not None and len(self.woken) >= most:
            return "fan_out"
        return limit


MAX_PAIRS = 8192
"""Pairs in memory before those with expired wakes are dropped."""

Pair = tuple[str, str, int]
"""Two agents, and the opening position of a person's interaction that they wake each other in, or
0.
"""


class LoopLimiter:
    """Counts the wakes between any two agents. Times are seconds of a monotonic clock.

    In memory only: a hub restart resets all counts.
    """

    def __init__(self, config: LoopLimitConfig):
        self._most, self._within, self._enabled = config.wakes, config.within, config.enabled
        self._pairs: dict[Pair, _Wakes] = {}
        self._person_wakes: dict[str, int] = {}
        """How often people have woken each agent."""
        self._room = MAX_PAIRS

    def __len__(self) -> int:
        """Number of pairs in memory."""
        return len(self._pairs)

    def wake(self, sender: str, agent: str, now: float, interaction: int = 0) -> bool:
        """Count a wake of `agent` by the agent `sender`; False if it is refused.

        `interaction` is its opening position if a person opened it, otherwise 0.
        """
        if not self._enabled:
            return True
        pair = _pair(sender, agent, interaction)
        wakes = self._pairs.get(pair)
        person_wakes = self._person_wakes
        epoch = person_wakes.get(sender, 0) + person_wakes.get(agent, 0) if person_wakes else 0
        if wakes is None or wakes.epoch != epoch:
            if wakes is None and len(self._pairs) >= self._room:
                self._forget(now)
            notified_at = -math.inf if wakes is None else wakes.notified_at
            self._pairs[pair] = _Wakes(epoch, now, notified_at)
            return True
        times = wakes.times
        if len(times) >= self._most:
            if times[0] > now - self._within:
                return False
            del times[0]
        times.append(now)
        return True

    def notice_due(self, sender: str, agent: str, now: float, interaction: int = 0) -> bool:
        """Whether a notice about the pair's limit is due: once per window."""
        wakes = self._pairs.get(_pair(sender, agent, interaction))
        if wakes is None or wakes.notified_at > now - self._within:
            return False
        wakes.notified_at = now
        return True

    def was_notified(self, sender: str, agent: str, now: float) -> bool:
        """Whether a notice was posted within the window, for interactions that agents opened."""
        wakes = self._pairs.get(_pair(sender, agent, 0))
        return wakes is not None and wakes.notified_at > now - self._within

    def roll_back(self, sender: str, agent: str, interaction: int = 0) -> None:
        """Roll back the last wake of the pair."""
        wakes = self._pairs.get(_pair(sender, agent, interaction))
        if wakes is not None and wakes.times:
            wakes.times.pop()

    def person(self, agent: str) -> None:
        """Restart the counts of an agent that a person wakes."""
        if self._enabled:
            self._person_wakes[agent] = self._person_wakes.get(agent, 0) + 1

    def _forget(self, now: float) -> None:
        old = now - self._within
        self._pairs = {
            pair: wakes for pair, wakes in self._pairs.items() if wakes.times[-1:] > [old]
        }
        self._room = max(MAX_PAIRS, 2 * len(self._pairs))


def _pair(one: str, other: str, interaction: int) -> Pair:
    return (one, other, interaction) if one < other else (other, one, interaction)


class _Wakes:
    """The wakes of one pair since a person last woke either."""

    __slots__ = ("epoch", "notified_at", "times")

    def __init__(self, epoch: int, now: float, notified_at: float):
        self.epoch = epoch
        self.times = [now]
        self.notified_at = notified_at
        """When the last notice about their limit was posted."""
