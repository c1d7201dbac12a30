"""Weighs what the rules of `wakes.py` have decided, recipient by recipient.

The loop limiter: two agents that only wake each other run out of breath.

    a wakes b, b wakes a, a wakes b     three wakes of the pair, as many as it has
    b wakes a                           kept from it until the oldest is old enough
    a person wakes a (or b)             the count begins anew

What a person has set in motion is counted for itself: who works for many people at once is not
held up because others ask the same.
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
    """Whether its wakes count as those of two agents that wake each other. Questions whose senders
    do nothing until they are answered do not, nor do the answers: circles of them are refused. Nor
    do the tasks of a plan that works for a person: each ends once, and the budget holds them."""
    draft = entry.draft
    if draft.sender_kind != "agent" or entry.by_person or draft.awaits or entry.awaited:
        return False
    mark = None if draft.purpose is None else draft.request
    if mark is not None and mark.kind == "task":
        return ledger is None or not ledger.opened_by_person
    return mark is None or not mark.ends


class Policies(NamedTuple):
    """Who is asked, in this order, whether a wake may be made; the interaction comes second."""

    stops: StandingStops
    daily: Daily
    limiter: LoopLimiter
    queues: Queues


class PolicyResult:
    """One message before its judges: whether it moves an account, and whom it was kept from
    waking."""

    def __init__(
        self, judges: Policies, entry: Entry, ledger: BudgetAccount, now: float, monotonic: float
    ):
        self._judges, self._entry = judges, entry
        self._draft, self._thread = entry.draft, entry.thread
        mark = entry.draft.request
        self._person, self._ends = entry.by_person, mark is not None and mark.ends
        self._monotonic = monotonic
        self._barrier = None if self._person else ledger.barrier(now)
        """A limit that lets the message wake nobody at all."""
        self.ledger, self.opens = ledger, entry.interaction is None
        """`opens`: the message opens the interaction, and its deliveries then tell whom it woke."""
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
        self.days: list[ReachedLimit] = []
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
            made.append(AccountChanged(opened, len(counted), agents=agents, reached=reached))
        if self.day is not None:
            made += [
                StoredSpending(self.day, agent, self._thread.no, wakes=1) for agent in self.woken
            ]
        return made

    def weigh_all(self, decisions: list[Decision]) -> None:
        """Temper the decisions, in place, and count what is left of them."""
        if not (self._person or self._ends or self.opens):
            self._hear_speaker()
        for index, decision in enumerate(decisions):
            if decision.reply is not None:
                decisions[index] = self._weigh(decision)
            elif decision.reason is Reason.HOP_LIMIT:
                self._reach("hops")

    def _reach(self, limit: LimitName) -> None:
        if limit not in self.reached:
            self.reached.append(limit)

    def _hear_speaker(self) -> None:
        """Who speaks in an interaction in which nothing woke it (an observer) is charged to it as
        if it had been woken: once, and for each word that it says to what it merely overhears."""
        ledger, draft = self.ledger, self._draft
        speaker = draft.sender_id
        if draft.sender_kind == "system":
            return
        overhears = self._overhears()
        if not overhears and (speaker == ledger.opened_by or speaker in ledger.agents):
            return
        if self._barrier is None:
            self._barrier = ledger.refuses(speaker)
        if self._barrier is None:
            self._charge(speaker)
        elif overhears:
            self._hear_last_word(speaker, self._barrier)

    def _overhears(self) -> bool:
        """Whether the speaker names a message as its cause that has not woken it."""
        seq = parse_message_id(self._draft.cause_id or "")
        return seq is not None and not self._judges.queues.holds(self._draft.sender_id, seq)

    def _hear_last_word(self, speaker: str, limit: LimitName) -> None:
        """Past a limit an observer has one more word: whoever overhears that would answer it
        without being woken, and so without end. Raises `OperationError` for a second one."""
        ledger = self.ledger
        if speaker not in ledger.last_words:
            ledger.last_words.add(speaker)
            self.last_word = True
            self._reach(limit)
            return
        raise OperationError(
            ErrorCode.BUDGET_EXHAUSTED,
            f"interaction {ledger.interaction} is past its limit ({limit}), and nothing in it has "
            "woken you; a person may go on by sending a new message",
            details={"interaction_id": ledger.interaction, "limit": limit},
        )

    def _charge(self, agent: str) -> None:
        self.ledger.wake(agent)
        self.counted.append(agent)

    def _weigh(self, decision: Decision) -> Decision:
        agent, _, reply = decision
        reason = self._in_the_way(agent)
        if reason is None:
            self._count(agent)
            return decision
        self.kept[agent] = reason
        if reply == "required":
            self.owed.append(agent)
        return Decision(agent, reason, None)

    def _count(self, agent: str) -> None:
        daily, thread_no = self._judges.daily, self._thread.no
        if not self._ends:
            self._charge(agent)
        self.woken.append(agent)
        daily.wake(agent, thread_no)
        if daily.limits_wakes:
            self.day = daily.day
        if self._person:
            self._judges.limiter.person(agent)

    def _in_the_way(self, agent: str) -> Reason | None:
        stops, daily, limiter, *_ = self._judges
        stopped = stops.of(agent, self._thread.id) if stops.standing else None
        if stops.standing and stopped is None and self._draft.timer_of is not None:
            stopped = stops.of(self._draft.timer_of, self._thread.id)  # nor do its timers go on
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
        if limiter.tells(sender, agent, now, of):
            self.breathless.append(agent)
        return Reason.LOOP_LIMIT

    def _limit(self, agent: str) -> LimitName | None:
        """The limit of the interaction that keeps the message from waking the agent."""
        if self._ends:
            return self._barrier
        limit = self._barrier or self.ledger.refuses(agent)
        most = self.ledger.limits.fan_out
        if limit is None and most is not None and len(self.woken) >= most:
            return "fan_out"
        return limit


MOST_PAIRS = 8192
"""Pairs that are remembered: then those whose wakes no longer count are looked for."""

Pair = tuple[str, str, int]
"""Two agents, and the interaction of a person in which they wake each other; 0: of no person."""


class LoopLimiter:
    """Counts the wakes between any two agents. Times are seconds of a clock that only goes on.

    Kept in memory alone: a hub that starts anew gives every pair a fresh breath.
    """

    def __init__(self, config: LoopLimitConfig):
        self._most, self._within, self._enabled = config.wakes, config.within, config.enabled
        self._pairs: dict[Pair, _Wakes] = {}
        self._spoken: dict[str, int] = {}
        """How often a person has woken the agent."""
        self._room = MOST_PAIRS

    def __len__(self) -> int:
        """Pairs that are remembered."""
        return len(self._pairs)

    def wake(self, sender: str, agent: str, now: float, interaction: int = 0) -> bool:
        """Count a wake of `agent` by the agent `sender`; False: it must not be made.

        `interaction`: the position of the message with which a person opened it; 0: an agent has.
        """
        if not self._enabled:
            return True
        pair = _pair(sender, agent, interaction)
        wakes = self._pairs.get(pair)
        spoken = self._spoken
        epoch = spoken.get(sender, 0) + spoken.get(agent, 0) if spoken else 0
        if wakes is None or wakes.epoch != epoch:
            if wakes is None and len(self._pairs) >= self._room:
                self._forget(now)
            told = -math.inf if wakes is None else wakes.told
            self._pairs[pair] = _Wakes(epoch, now, told)
            return True
        times = wakes.times
        if len(times) >= self._most:
            if times[0] > now - self._within:
                return False
            del times[0]
        times.append(now)
        return True

    def tells(self, sender: str, agent: str, now: float, interaction: int = 0) -> bool:
        """Whether it is to be told that the pair has no breath: once in the time that counts."""
        wakes = self._pairs.get(_pair(sender, agent, interaction))
        if wakes is None or wakes.told > now - self._within:
            return False
        wakes.told = now
        return True

    def was_told(self, sender: str, agent: str, now: float) -> bool:
        """Whether that was told, and not so long ago, of what agents have opened themselves."""
        wakes = self._pairs.get(_pair(sender, agent, 0))
        return wakes is not None and wakes.told > now - self._within

    def take_back(self, sender: str, agent: str, interaction: int = 0) -> None:
        """The last wake of the pair was not made after all."""
        wakes = self._pairs.get(_pair(sender, agent, interaction))
        if wakes is not None and wakes.times:
            wakes.times.pop()

    def person(self, agent: str) -> None:
        """A person's message wakes the agent."""
        if self._enabled:
            self._spoken[agent] = self._spoken.get(agent, 0) + 1

    def _forget(self, now: float) -> None:
        old = now - self._within
        self._pairs = {
            pair: wakes for pair, wakes in self._pairs.items() if wakes.times[-1:] > [old]
        }
        self._room = max(MOST_PAIRS, 2 * len(self._pairs))


def _pair(one: str, other: str, interaction: int) -> Pair:
    return (one, other, interaction) if one < other else (other, one, interaction)


class _Wakes:
    """The wakes of one pair since a person last woke either."""

    __slots__ = ("epoch", "times", "told")

    def __init__(self, epoch: int, now: float, told: float):
        self.epoch = epoch
        self.times = [now]
        self.told = told
        """When it was told that they have no breath."""
