"""The one place that judges who is let wake whom, beyond the rules of `wakes.py`.

What the rules would let wake is asked about in this order, and the first that says no is the
reason why the message is delivered and wakes nobody:

    stop -> breaker -> take-over -> wall clock, tokens, money, wakes, agents and fan-out of the
    interaction -> the day's limits of network, thread and agent -> dampener

A person's message is held by stops and the day's limits alone: it wakes as many as it names, and
that is counted. What ends a request wakes whom waits for it, however many wakes there were.

Wakes are counted at once, in memory, and taken back if the store refuses the message.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from hubbub.clock import SteadyClock
from hubbub.network.control.bench import Bench, Judges, is_dampened
from hubbub.network.control.book import Book
from hubbub.network.control.daily import Daily, Reached
from hubbub.network.control.dampener import Dampener
from hubbub.network.control.judgement import Judgement
from hubbub.network.control.leases import Leases
from hubbub.network.control.ledger import Ledger
from hubbub.network.control.notices import Notice, Notices
from hubbub.network.control.unsaved import Unsaved
from hubbub.network.lineage import Lineage
from hubbub.network.queries import SpendingSince
from hubbub.network.threads import Thread
from hubbub.network.wakes import Decision, Reason
from hubbub.protocol.messages import Draft
from hubbub.protocol.spending import LimitName

if TYPE_CHECKING:
    from hubbub.clock import Clock
    from hubbub.config.models import NetworkFile
    from hubbub.network.log import Entry, Log
    from hubbub.network.ports import Store
    from hubbub.network.queues import Queues
    from hubbub.network.state import NetworkState

__all__ = ["Control"]


class Control:
    """Judges messages on their way into the log."""

    def __init__(
        self,
        file: NetworkFile,
        store: Store,
        log: Log,
        state: NetworkState,
        queues: Queues,
        clock: Clock,
        post: Callable[[Notice], None],
    ):
        """Of a network with this config; `post` says what it has to say."""
        config = file.network
        own = {name: agent.daily for name, agent in file.agents.items() if agent.daily is not None}
        self._store, self._threads, self._halts = store, state.threads, state.halts
        steady = SteadyClock(clock)
        self.steady: Callable[[], float] = steady.now
        """By which interactions grow old."""
        self._monotonic: Callable[[], float] = clock.monotonic
        self._set_by_person = state.set_by_person
        self.book = Book(
            store,
            state.threads,
            config.budgets,
            set_by_person=state.set_by_person,
            moment=steady.moment,
        )
        self.daily = Daily(config.daily, own, clock.now())
        self._plain = not self.daily.limited
        self._dampener = Dampener(config.wake.dampener)
        self._notices = Notices(state.threads, post, config.wake.dampener)
        self._unsaved = Unsaved(log, clock.now)
        self._judges = Judges(state.halts, self.daily, self._dampener, self._unsaved, queues)
        self.turns = Leases(
            store, self.book, self.daily, clock.now, self.steady, self.reach, self._spent_up
        )

    async def restore(self) -> None:
        """Read what was spent today. Raises `StoreUnavailable`."""
        if self.daily.limited:
            self.daily.restore(await self._store.read(SpendingSince(self.daily.day)))

    def flush(self) -> None:
        """Hand to the log what is written a little later."""
        self._unsaved.flush()

    async def saved(self) -> None:
        """Wait until that is in the store. Raises `StoreUnavailable`."""
        await self._unsaved.saved()

    async def load(self, interaction: str) -> None:
        """Make sure that the interaction's account is at hand. Raises `StoreUnavailable`."""
        if self.needs(interaction):
            await self.book.load(interaction)

    def needs(self, interaction: str) -> bool:
        """Whether the interaction's account must be loaded before a message of it is judged."""
        return self.book.find(interaction) is None

    def judge(
        self, draft: Draft, thread: Thread, decisions: list[Decision], lineage: Lineage
    ) -> Judgement | None:
        """Temper the decisions, in place, and count the wakes that are left.

        None: nothing is to be written with the message, and nothing was kept from waking.
        """
        if lineage.interaction is None and self._plain and not self._halts.any:
            # Most messages are of one of these two kinds, and judged within a microsecond.
            if draft.by_person:
                self._let_wake(decisions, thread.no)
                return None
            if len(decisions) == 1 and draft.sender_kind == "agent":
                agent, _, reply = decisions[0]
                if reply is None:
                    return None
                if is_dampened(draft, None):
                    now = self._monotonic()
                    if self._dampener.wake(draft.sender_id, agent, now):
                        self._unsaved.wake(agent, thread.no)
                        return None
                    if self._dampener.was_told(draft.sender_id, agent, now):
                        decisions[0] = Decision(agent, Reason.DAMPENED, None)
                        return None
        return self._weigh(draft, thread, decisions, lineage)

    def _let_wake(self, decisions: Sequence[Decision], thread_no: int) -> None:
        """A person's words, with nothing in their way."""
        for agent, _, reply in decisions:
            if reply is not None:
                self._dampener.person(agent)
                self._unsaved.wake(agent, thread_no)

    def _weigh(
        self, draft: Draft, thread: Thread, decisions: list[Decision], lineage: Lineage
    ) -> Judgement | None:
        person, opens = draft.by_person, lineage.interaction is None
        wakes = any(decision.reply is not None for decision in decisions)
        if not wakes and (opens or person):
            return None
        now = self.steady()
        if lineage.interaction is None:
            opener, of_person = self._opener(draft)
            ledger = self.book.new(opener, thread.no, now, person=of_person)
        else:
            found = self.book.find(lineage.interaction)
            assert found is not None, "loaded before"
            ledger = found
        judgement = Judgement(ledger, thread.no, opens=opens)
        self.daily.today(now)
        bench = Bench(self._judges, draft, thread, judgement, now, self._monotonic())
        bench.weigh_all(decisions)
        if not (judgement.moves or judgement.woken or judgement.kept):
            return None
        ledger.pins += 1
        return judgement

    def _opener(self, draft: Draft) -> tuple[str, bool]:
        """Who opens an interaction with the draft, and whether that is a person."""
        of = draft.timer_of
        if of is not None:
            return of, self._set_by_person(of)
        return draft.said_by, draft.by_person

    # What became of it --------------------------------------------------------------------

    def committed(self, entries: Sequence[Entry]) -> None:
        """These messages are durable."""
        now, opened = self.steady(), self.book.opened
        for entry in entries:
            judgement = entry.judgement
            if judgement is not None:
                self._settle(entry, judgement)
            if entry.interaction is None and (judgement is None or not judgement.moves):
                opened(
                    entry.seq,
                    *self._opener(entry.draft),
                    entry.thread.no,
                    now,
                    entry.decisions,
                )

    def _settle(self, entry: Entry, judgement: Judgement) -> None:
        ledger = judgement.ledger
        ledger.pins -= 1
        if judgement.opens and judgement.moves:
            ledger.seq = entry.seq
            self.book.keep(ledger)
        ledger.saved.update(judgement.counted, judgement.reached)
        for limit in judgement.reached:
            self.reach(ledger, limit)
        if judgement.breathless:
            self._notices.breathless(entry, judgement)
        if entry.draft.by_person:
            self._notices.unheard(entry, judgement)
        else:
            for reached in judgement.days:
                self._notices.day(reached, self.daily.day, entry.thread)

    def reach(self, ledger: Ledger, limit: LimitName) -> None:
        """A limit has stood in the way: those whom it concerns are told once."""
        if limit not in ledger.reached:
            ledger.reached.add(limit)
            if limit not in ledger.saved:
                self._unsaved.reached(ledger, limit)
            self._notices.limit(ledger, limit, self.steady())

    def _spent_up(self, reached: Reached, thread_no: int) -> None:
        """A limit of the day has stood in the way of a question to a model."""
        thread = self._threads.by_no(thread_no)
        self._notices.day(reached, self.daily.day, thread)

    def take_back(self, entry: Entry) -> None:
        """The message is not in the log: what it was counted as is not so."""
        draft, judgement = entry.draft, entry.judgement
        ledger = judgement.ledger if judgement is not None else None
        for agent, _, reply in entry.decisions:
            if reply is not None:
                if is_dampened(draft, ledger):
                    of = ledger.of_person if ledger is not None else 0
                    self._dampener.take_back(draft.sender_id, agent, of)
                if not self.daily.limits_wakes:
                    self._unsaved.wake(agent, entry.thread.no, -1)
                self.daily.wake(agent, entry.thread.no, -1)
        if judgement is not None:
            judgement.ledger.pins -= 1
            for agent in judgement.counted:
                judgement.ledger.unwake(agent)
            if judgement.last_word:
                judgement.ledger.last_words.discard(draft.sender_id)
