"""The only place that refuses wakes which the rules of `wakes.py` allow.

Checks run in this order. The first that refuses is the reason that the message is delivered without
waking:

    stop -> breaker -> takeover -> wall clock, tokens, money, wakes, agents and fan-out of the
    interaction -> daily limits of network, thread and agent -> loop limit

Only stops and daily limits apply to a person's message: it wakes all agents that it names, and
counts each wake. The message that ends a request always wakes the requester, whatever the count of
wakes.

Wakes are counted at once, in memory, and rolled back if the store refuses the message.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from hubbub.config.budgets import DailyBudget
from hubbub.errors import LogDamaged, OperationError
from hubbub.logs import get_logger
from hubbub.mods.operation import operation
from hubbub.network.caller import Caller
from hubbub.network.kernel import Kernel
from hubbub.network.log import Entry
from hubbub.network.policy import Gate
from hubbub.network.queries import (
    InteractionMessages,
    SpendingSince,
    SpentInTurnsSince,
    TurnsById,
    WakeOf,
    WakesAt,
)
from hubbub.network.records import Record
from hubbub.network.routing import cause_position, own_turn, unknown_interaction, unknown_turn
from hubbub.network.service import Service
from hubbub.network.services.budgets.account import BudgetAccount, TurnAccount
from hubbub.network.services.budgets.accounts import BudgetAccounts, Opening, UnsavedCounts
from hubbub.network.services.budgets.daily import Daily, ReachedLimit
from hubbub.network.services.budgets.notices import BudgetNotices, Notice
from hubbub.network.services.budgets.policy import (
    LoopLimiter,
    Policies,
    PolicyResult,
    may_loop,
)
from hubbub.network.services.budgets.turn_accounts import TurnAccounts
from hubbub.network.services.threads import find_thread
from hubbub.network.stored import SpentInTurns, StoredSpending
from hubbub.network.trace_context import Ancestor
from hubbub.network.wakes import SUPPRESSIONS, Decision, Reason
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Message
from hubbub.protocol.spending import (
    BudgetState,
    LimitName,
    ReadBudget,
    ReadSpending,
    RemainingBudget,
    Reservation,
    ReserveBudget,
    Spending,
    SpendingRow,
    SpentBy,
    Sums,
)

__all__ = ["BudgetService"]

log = get_logger(__name__)

LATELY = 64
"""Messages that a starting hub checks for missing notices."""
COST = 0.1
"""Cost against the rate limit: a working agent reserves before each call of its model."""


class BudgetService(Service, Gate):
    """Checks messages on their way into the log, and accounts for the cost of turns."""

    watches = True

    def __init__(self, kernel: Kernel):
        super().__init__(kernel)
        config, clock, state = kernel.config, kernel.clock, kernel.state
        agents = kernel.file.agents.items()
        own = {name: agent.daily for name, agent in agents if agent.daily is not None}
        self.steady: Callable[[], float] = kernel.steady.now
        """The clock for the age of interactions."""
        self._now, self._monotonic = clock.now, clock.monotonic
        self.book = BudgetAccounts(
            kernel.store,
            state.threads,
            config.budgets,
            set_by_person=state.set_by_person,
            moment=kernel.steady.moment,
        )
        self.daily = Daily(config.daily, own, clock.now())
        self._plain = not self.daily.limited
        self._standing = state.stops.standing
        self._limiter = LoopLimiter(config.wake.loop_limit)
        self._notices = BudgetNotices(state.threads, self._post, config.wake.loop_limit)
        self._unsaved = UnsavedCounts(kernel.log, clock.now)
        self._policies = Policies(state.stops, self.daily, self._limiter, kernel.queues)
        self._judgements: dict[Entry, PolicyResult] = {}
        """For entries in flight that change an account or were kept from waking an agent."""
        self.turns = TurnAccounts(
            kernel.store,
            self.book,
            self.daily,
            clock.now,
            self.steady,
            self.reach,
            self._reach_daily,
        )

    def _post(self, notice: Notice) -> None:
        post = self.kernel.writes.notice
        post(notice.thread_id, notice.text, notice.details, notice.once, to=notice.to)

    async def restore(self) -> None:
        """Load today's spending. Raises `StoreUnavailable`."""
        if self.daily.limited:
            self.daily.restore(await self.store.read(SpendingSince(self.daily.day)))

    def begin(self) -> None:
        self.kernel.spawn(self.kernel.until_readable(self._repost_notices))

    async def _repost_notices(self) -> None:
        """After a start, post notices for recent messages to agents that were kept from waking, as
        the hub may have crashed before it did. A notice in the log is not posted twice."""
        head, prevented = self.kernel.log.head, defaultdict[int, dict[str, Reason]](dict)
        wakes = await self.store.read(WakesAt(list(range(max(1, head - LATELY + 1), head + 1))))
        for (seq, agent), wake in wakes.items():
            if wake.reply is None and wake.reason in SUPPRESSIONS.keys() - {Reason.MUTED}:
                prevented[seq][agent] = Reason(wake.reason)
        for seq, reasons in prevented.items():
            try:
                message = Message.model_validate_json(await self.store.message(seq) or b"")
            except LogDamaged:
                continue
            if not message.by_person:
                continue
            named = {*message.mentions} if message.type == "broadcast" else {*reasons}
            owed = {agent: reason for agent, reason in reasons.items() if agent in named}
            self._notices.unanswered(seq, message.thread_id, message.author, owed)

    async def set_daily(self, agent: str, budget: DailyBudget | None) -> None:
        """Set the agent's daily budget. Raises `StoreUnavailable`."""
        await self._unsaved.saved()  # or the day would be restored without the last wakes
        counted = self.daily.limited
        self.daily.set(agent, budget)
        self._plain = not self.daily.limited
        if not counted:
            await self.restore()

    def flush(self) -> None:
        """Queue the counts that are still in memory for writing."""
        self._unsaved.flush()

    async def saved(self) -> None:
        """Wait until all counts are in the store. Raises `StoreUnavailable`."""
        await self._unsaved.saved()

    # The gate ---------------------------------------------------------------------------------

    def needs(self, cause: Ancestor) -> bool:
        return self.book.find(cause.interaction) is None

    async def load(self, cause: Ancestor) -> None:
        if self.needs(cause):
            await self.book.load(cause.interaction)

    def judge(self, entry: Entry) -> None:
        """Withdraw refused wakes from the decisions, in place, and count the rest."""
        draft, decisions = entry.draft, entry.decisions
        if entry.interaction is None and self._plain and not self._standing:
            # The fast path: most messages are one of these two kinds.
            if entry.by_person:
                for agent, _, reply in decisions:
                    if reply is not None:
                        self._limiter.person(agent)
                return
            if len(decisions) == 1 and draft.sender_kind == "agent":
                agent, _, reply = decisions[0]
                if reply is None:
                    return
                if may_loop(entry, None):
                    now = self._monotonic()
                    if self._limiter.wake(draft.sender_id, agent, now):
                        return
                    if self._limiter.was_notified(draft.sender_id, agent, now):
                        decisions[0] = Decision(agent, Reason.LOOP_LIMIT, None)
                        return
        judgement = self._check_wake(entry)
        if judgement is not None:
            self._judgements[entry] = judgement
            entry.rows = (*entry.rows, self._rows)

    def _rows(self, entry: Entry) -> Sequence[Record]:
        return self._judgements[entry].records(entry.seq)

    def _check_wake(self, entry: Entry) -> PolicyResult | None:
        """The result; None if it neither writes anything with the message nor refuses a wake."""
        thread, decisions = entry.thread, entry.decisions
        person, opens = entry.by_person, entry.interaction is None
        wakes = any(decision.reply is not None for decision in decisions)
        if not wakes and (opens or person):
            return None
        now = self.steady()
        if entry.interaction is None:
            opener, of_person = self._opener(entry)
            ledger = self.book.new(opener, thread.no, now, person=of_person)
        else:
            loaded = self.book.find(entry.interaction)
            assert loaded is not None, "loaded before"
            ledger = loaded
        self.daily.today(self._now())
        judgement = PolicyResult(self._policies, entry, ledger, now, self._monotonic())
        judgement.check_all(decisions)
        if not (judgement.moves or judgement.woken or judgement.kept):
            return None
        ledger.pins += 1
        return judgement

    def _opener(self, entry: Entry) -> tuple[str, bool]:
        draft = entry.draft
        timer_of = draft.timer_of if draft.purpose is not None else None
        if timer_of is not None:
            return timer_of, self.state.set_by_person(timer_of)
        return draft.author, entry.by_person

    def absent(self, participant: str, *, replaced: bool) -> None:
        """Release the reservations of an agent that left."""
        self.turns.left(participant)

    # Outcomes -----------------------------------------------------------------------------

    def committed(self, entries: Sequence[Entry]) -> None:
        """Apply the results of committed messages, and post the notices."""
        now, openings = self.steady(), list[Opening]()
        if not self.daily.limits_wakes:
            self._unsaved.add(
                [
                    (agent, entry.thread.no)
                    for entry in entries
                    if entry.wakes
                    for agent, _, reply in entry.decisions
                    if reply is not None
                ]
            )
        judgements = self._judgements
        for entry in entries:
            judgement = judgements.pop(entry, None) if judgements else None
            if judgement is not None:
                self._settle(entry, judgement)
            if entry.interaction is None and (judgement is None or not judgement.moves):
                by, person = (
                    (entry.draft.sender_id, False) if entry.ordinary else self._opener(entry)
                )
                openings.append((entry.seq, by, person, entry.thread.no, now, entry.decisions))
        self.book.opened(openings)

    def _settle(self, entry: Entry, judgement: PolicyResult) -> None:
        ledger = judgement.ledger
        ledger.pins -= 1
        if judgement.opens and judgement.moves:
            ledger.seq = entry.seq
            self.book.keep(ledger)
        ledger.saved.update(judgement.counted, judgement.reached)
        for limit in judgement.reached:
            self.reach(ledger, limit)
        if judgement.looping:
            self._notices.looping(entry, judgement)
        if entry.by_person:
            owed = {agent: judgement.kept[agent] for agent in judgement.owed}
            self._notices.unanswered(entry.seq, entry.thread.id, entry.draft.author, owed)
        else:
            for reached in judgement.days:
                self._notices.day(reached, self.daily.day, entry.thread)

    def reach(self, ledger: BudgetAccount, limit: LimitName) -> None:
        """Record that an interaction reached a limit, and post the notice, once."""
        if limit not in ledger.reached:
            ledger.reached.add(limit)
            if limit not in ledger.saved:
                self._unsaved.reached(ledger, limit)
            self._notices.limit(ledger, limit, self.steady())

    def _reach_daily(self, reached: ReachedLimit, thread_no: int) -> None:
        thread = self.state.threads.by_no(thread_no)
        self._notices.day(reached, self.daily.day, thread)

    def roll_back(self, entry: Entry) -> None:
        """Roll back the counts of a message that is not in the log."""
        draft, judgement = entry.draft, self._judgements.pop(entry, None)
        ledger = judgement.ledger if judgement is not None else None
        for agent, _, reply in entry.decisions:
            if reply is not None:
                if may_loop(entry, ledger):
                    of = ledger.of_person if ledger is not None else 0
                    self._limiter.roll_back(draft.sender_id, agent, of)
                self.daily.wake(agent, entry.thread.no, -1)
        if judgement is not None:
            judgement.ledger.pins -= 1
            for agent in judgement.counted:
                judgement.ledger.unwake(agent)
            if judgement.last_word:
                judgement.ledger.last_words.discard(draft.sender_id)

    # Turns --------------------------------------------------------------------------------

    async def account(self, call: Caller, turn: str) -> TurnAccount:
        """The account of one of the caller's turns.

        Raises `OperationError`, also if the message did not wake the caller, so that no one can use
        up another's budget.
        """
        running = self.turns.find(turn)
        own = running is not None and running.agent == call.participant
        if running is not None and own and not self.turns.is_loading(turn):
            return running
        own_turn(turn, call.participant, self.kernel.log.head)
        async with self.turns.loading(turn):
            return self.turns.find(turn) or await self._load_account(call.participant, turn)

    async def _load_account(self, agent: str, turn: str) -> TurnAccount:
        seq, _ = cause_position(turn, agent)
        woken_by = await self.kernel.writes.causes.ancestor(seq)
        if woken_by is None or not await self._has_woken(agent, seq, woken_by.thread_no):
            raise unknown_turn(turn)
        return await self.turns.load(turn, agent, woken_by.thread_no, woken_by.interaction)

    async def _has_woken(self, agent: str, seq: int, thread_no: int) -> bool:
        """Whether the message at `seq` woke the agent, however long ago.

        Raises `OperationError` if it did not because of a stop.
        """
        if self.kernel.queues.holds(agent, seq):
            return True
        wake = await self.store.read(WakeOf(agent, seq))
        if wake is not None and wake.reply is None:  # the agent received it, and may learn why
            self.state.stops.refuse(agent, self.state.threads.by_no(thread_no).id)
        return wake is not None and wake.reply is not None

    # Operations ---------------------------------------------------------------------------

    @operation(permission="read", tool=False, cost=COST)
    async def reserve_budget(self, call: Caller, args: ReserveBudget) -> Reservation:
        """Reserve the estimated cost of a model call, until the step with the actual cost is
        recorded."""
        account = await self.account(call, args.turn)
        state = self.state
        state.turns.check(args.turn)
        state.stops.refuse(call.participant, state.threads.by_no(account.thread_no).id)
        if account.has_ended:
            raise OperationError(ErrorCode.TURN_OVER, f"turn {args.turn} has ended")
        return self.turns.reserve(account, args)

    @operation(tool=False)
    async def read_budget(self, call: Caller, args: ReadBudget) -> BudgetState:
        """Read an interaction's budget: its limits and what is used. For its participants, and
        owners."""
        ledger = await self.book.load(args.interaction)
        if ledger is None or not self._takes_part(call, ledger):
            raise unknown_interaction(args.interaction)
        active, began, last = await self._course(call, ledger)
        age = self.steady() - ledger.opened_at if active else last - began
        return BudgetState(
            interaction=args.interaction,
            opened_by=ledger.opened_by,
            opened_at=datetime.fromtimestamp(began, UTC),
            limits=ledger.budget(),
            used=ledger.used(ledger.opened_at + age),
            reached=tuple(sorted(ledger.reached)),
            sums=ledger.sums(),
            active=active,
        )

    def _takes_part(self, call: Caller, ledger: BudgetAccount) -> bool:
        me = call.participant
        opened_in = self.state.threads.by_no(ledger.thread_no)
        return (
            call.owner or me == ledger.opened_by or me in ledger.agents or call.may_look(opened_in)
        )

    async def _course(self, call: Caller, ledger: BudgetAccount) -> tuple[bool, float, float]:
        """Whether the interaction has running turns or pending wakes, and the times of its first
        and last event."""
        store, runs = self.store, self.turns.runs(ledger)
        stored = await store.read(
            InteractionMessages(ledger.interaction, ledger.seq - 1, self.kernel.log.head)
        )
        messages = [Message.model_validate_json(body) for _, body in stored.rows]
        wakes = await store.read(WakesAt([message.seq for message in messages])) if messages else {}
        turns = await store.read(TurnsById([wake.taken for wake in wakes.values() if wake.taken]))
        waits = any(wake.state in ("pending", "running") for wake in wakes.values())
        sent = [message.sent_at.timestamp() for message in messages]
        ended = (turn.ended_at for turn in turns if turn.ended_at is not None)
        return runs or waits, sent[0], max((*sent, *ended))

    @operation(tool=False)
    async def read_spending(self, call: Caller, args: ReadSpending) -> Spending:
        """Read the spending by day, agent and thread, with the daily limits and their usage. An
        owner sees everything, others only what they take part in."""
        thread_no = None if args.thread is None else find_thread(call, args.thread, look=True).no
        await self.saved()
        since = datetime.fromtimestamp(self.kernel.clock.now(), UTC) - timedelta(days=args.days - 1)
        stored = await self.store.read(
            SpendingSince(since.strftime("%Y-%m-%d"), args.agent, thread_no)
        )
        mine = [row for row in stored if self._may_see(call, row)]
        mine.sort(key=lambda row: (row.usd, row.tokens_in + row.tokens_out), reverse=True)
        mine.sort(key=lambda row: row.day, reverse=True)
        today = self.daily.used(args.agent, thread_no) if self.daily.limited else ()
        turns: Sequence[SpentInTurns] = ()
        if args.turns and call.owner:
            midnight = since.replace(hour=0, minute=0, second=0, microsecond=0)
            turns = await self.store.read(SpentInTurnsSince(int(midnight.timestamp())))
        return Spending(
            models=_spent_by(turns, lambda row: row.model),
            people=_spent_by(turns, lambda row: row.person),
            rows=tuple(self._row(row) for row in mine),
            total=_sums(*mine),
            today=tuple(
                RemainingBudget(limit=each.limit, whose=each.whose, used=each.used, of=each.of)
                for each in today
            ),
        )

    def _may_see(self, call: Caller, row: StoredSpending) -> bool:
        if call.owner or row.agent == call.participant:
            return True
        return call.may_look(self.state.threads.by_no(row.thread_no))

    def _row(self, row: StoredSpending) -> SpendingRow:
        thread = self.state.threads.by_no(row.thread_no)
        return SpendingRow(day=row.day, agent=row.agent, thread_id=thread.id, sums=_sums(row))


def _spent_by(
    rows: Sequence[SpentInTurns], key: Callable[[SpentInTurns], str]
) -> tuple[SpentBy, ...]:
    """Sums by `key`, most expensive first."""
    names = {key(row) for row in rows} - {""}
    spent = [SpentBy(name=n, sums=_sums(*(r for r in rows if key(r) == n))) for n in sorted(names)]
    spent.sort(key=lambda by: (by.sums.usd, by.sums.tokens_in + by.sums.tokens_out), reverse=True)
    return tuple(spent)


def _sums(*rows: StoredSpending | SpentInTurns) -> Sums:
    return Sums(
        turns=sum(row.turns for row in rows),
        wakes=sum(row.wakes for row in rows if isinstance(row, StoredSpending)),
        tokens_in=sum(row.tokens_in for row in rows),
        tokens_out=sum(row.tokens_out for row in rows),
        usd=round(sum(row.usd for row in rows), 9),
    )
