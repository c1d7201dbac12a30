"""Follows questions that agents pass on, until someone answers or no answer can come any more.

    a person's message requires a reply -> it wakes agents, whose messages wake others
      -> an answer, or a notice that names the message: the question is closed
      -> the last of these turns ends without one: one notice

A turn that sends nothing, or fails, gets its notice at once (`notices.py`). This module covers the
remaining case: an agent passes the question on and finishes, and the next agent stays silent.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hubbub.errors import LogDamaged
from hubbub.ids import interaction_id, parse_message_id
from hubbub.network.log import Entry, Log
from hubbub.network.ports import Store
from hubbub.network.queries import TurnsById, WakesAt
from hubbub.network.queues import Queues
from hubbub.network.services.requests import RequestService
from hubbub.network.services.turns.notices import reaches
from hubbub.network.state import NetworkState
from hubbub.network.stored import StoredEvent, StoredWake
from hubbub.network.wakes import SUPPRESSIONS, Reason
from hubbub.protocol.messages import Draft, Message, TranscriptMark
from hubbub.protocol.turns import TurnEnd

__all__ = ["FollowedQuestion", "OpenQuestions", "Wake"]

Wake = tuple[str, int]
"""An agent, and the position of the message that woke it."""

MAX_QUESTIONS = 4096
"""Questions followed at a time; beyond that the oldest are dropped."""
RECENT_MESSAGES, PAGE = 1024, 128
"""Messages that a starting hub reads, and how many per query."""


@dataclass(eq=False)
class FollowedQuestion:
    """A person's message that required a reply and got none so far."""

    seq: int
    thread_id: str
    person: str
    open: set[Wake] = field(default_factory=set)
    """Wakes by the message and its descendants whose turns have not ended."""
    descendants: list[int] = field(default_factory=list)
    """Positions of the agents' messages that descend from it."""
    ends: dict[str, TurnEnd] = field(default_factory=dict)
    """How the last turn of each agent ended."""
    refused: dict[str, Reason] = field(default_factory=dict)
    """Agents that the latest message to them did not wake, and why. Not restored after a start."""

    def is_reached_by(self, message: Draft | Message) -> bool:
        """Whether the message reaches the person, directly or in the thread where they asked."""
        return reaches(message, self.thread_id, self.person)


class OpenQuestions:
    """The open questions among the latest messages. `load` adds those from before the hub's
    start."""

    def __init__(self, store: Store, state: NetworkState, queues: Queues, requests: RequestService):
        self._store, self._state, self._queues = store, state, queues
        self._requests = requests
        self._questions: dict[str, FollowedQuestion] = {}
        """By interaction, oldest first."""
        self._wakes: dict[Wake, FollowedQuestion] = {}
        self._ended_while_loading: dict[Wake, TurnEnd] | None = {}
        """Wakes whose turns ended while loading; None once it is done."""
        self._notified = set[str]()
        """Interactions that got their notice while loading."""

    def __len__(self) -> int:
        return len(self._questions)

    # Messages -------------------------------------------------------------------------------

    def committed(self, entries: Sequence[Entry]) -> list[FollowedQuestion]:
        """Process committed messages. Returns the questions that can no longer be answered."""
        if self._ended_while_loading is not None:
            return []
        unanswerable = list[FollowedQuestion]()
        for entry in entries:
            opens = entry.interaction is None
            if not self._questions and not (opens and entry.by_person):
                continue
            if isinstance(entry.draft.purpose, TranscriptMark):
                continue
            if entry.turn is not None:
                self._answer(entry.draft, self._queues.taken_by(entry.turn))
            woken = {(who, entry.seq): reply for who, _, reply in entry.decisions if reply}
            interaction = entry.interaction or interaction_id(entry.seq)
            question = self._process(entry.draft, entry.seq, interaction, woken, opens=opens)
            if question is None:
                continue
            for agent, reason, reply in entry.decisions:
                if reply is not None:
                    question.refused.pop(agent, None)
                elif reason in SUPPRESSIONS:
                    question.refused[agent] = reason
            if self._is_unanswerable(question):
                unanswerable.append(question)
        return self._drop(unanswerable)

    def _process(
        self,
        message: Draft | Message,
        seq: int,
        interaction: str,
        woken: Mapping[Wake, str],
        *,
        opens: bool,
    ) -> FollowedQuestion | None:
        """Process a message. Returns the question it belongs to, if that is still open."""
        if message.amends is not None:
            return None
        if opens:
            if message.by_person and "required" in woken.values():
                self._ask(
                    interaction,
                    FollowedQuestion(seq, message.thread_id, message.author),
                    woken,
                )
            elif message.sender_kind == "system":
                self._notice(message)
            if message.sent_by is not None:
                self._drop([q for q in self._questions.values() if q.is_reached_by(message)])
            return None
        question = self._questions.get(interaction)
        if question is None:
            return None
        if question.is_reached_by(message) or self._is_for_people(message):
            self._drop([question])
            return None
        question.descendants.append(seq)
        self._open(question, woken)
        return question

    def _answer(self, message: Draft | Message, wakes: Iterable[Wake]) -> None:
        """A message of the turn that took these wakes answers everyone it reaches."""
        asked = dict.fromkeys(self._wakes[wake] for wake in wakes if wake in self._wakes)
        self._drop([question for question in asked if question.is_reached_by(message)])

    def _ask(self, interaction: str, question: FollowedQuestion, woken: Collection[Wake]) -> None:
        self._questions[interaction] = question
        self._open(question, woken)
        if len(self._questions) > MAX_QUESTIONS:
            self._drop([next(iter(self._questions.values()))])

    def _open(self, question: FollowedQuestion, woken: Collection[Wake]) -> None:
        question.open.update(woken)
        self._wakes.update(dict.fromkeys(woken, question))

    def _notice(self, message: Draft | Message) -> None:
        """A notice of the hub closes the questions that it names."""
        named = message.content.get("messages") if isinstance(message.content, dict) else None
        for id in named if isinstance(named, list) else ():
            self.close(str(id))

    def _is_for_people(self, message: Draft | Message) -> bool:
        """Whether the message hands the matter to other people, whose replies open interactions of
        their own."""
        ids = {*message.recipients, *message.mentions}
        return any(map(self._state.is_person, ids))

    # Ends -----------------------------------------------------------------------------------

    def close(self, id: str) -> None:
        """Close the question of message `id`: its author was notified that no answer comes."""
        interaction = interaction_id(parse_message_id(id) or 0)
        if self._ended_while_loading is not None:
            self._notified.add(interaction)
        question = self._questions.get(interaction)
        self._drop([question] if question is not None else [])

    def turn_ended(
        self, agent: str, messages: Iterable[str], end: TurnEnd
    ) -> list[FollowedQuestion]:
        """Process the durable end of a turn that handled these messages. Returns the questions that
        can no longer be answered."""
        wakes = [(agent, parse_message_id(id) or 0) for id in messages]
        if self._ended_while_loading is not None:
            self._ended_while_loading.update(dict.fromkeys(wakes, end))
            return []
        return self._drop(
            [q for q in self._close(dict.fromkeys(wakes, end)) if self._is_unanswerable(q)]
        )

    def _close(self, ended: Mapping[Wake, TurnEnd]) -> Collection[FollowedQuestion]:
        questions = dict[FollowedQuestion, None]()
        for wake, end in ended.items():
            question = self._wakes.pop(wake, None)
            if question is not None:
                question.open.discard(wake)
                question.ends[wake[0]] = end
                questions[question] = None
        return questions

    def _is_unanswerable(self, question: FollowedQuestion) -> bool:
        return not question.open and not self._requests.any_open(question.descendants)

    def _drop(self, questions: list[FollowedQuestion]) -> list[FollowedQuestion]:
        for question in questions:
            self._questions.pop(interaction_id(question.seq), None)
            for wake in question.open:
                self._wakes.pop(wake, None)
        return questions

    # The start of the hub -------------------------------------------------------------------

    async def load(self, log: Log) -> None:
        """Restore the questions from the log. Raises `StoreUnavailable`; it can be called again."""
        self._questions.clear()
        self._wakes.clear()
        messages = dict[int, Message]()
        at = max(0, log.head - RECENT_MESSAGES)
        while at < log.head:
            page, at = await self._page(at, log.head)
            wakes = await self._store.read(WakesAt([event.seq for event in page]))
            for event in page:
                message = messages[event.seq] = Message.model_validate_json(event.body)
                of = message.interaction_id
                opens = of == interaction_id(event.seq)
                self._process(message, event.seq, of, _woken(wakes, event.seq), opens=opens)
            if at == log.head:  # the log can grow meanwhile
                await self._restore_turns(messages)
        self._close(self._ended_while_loading or {})
        self._drop([q for i, q in self._questions.items() if i in self._notified])
        self._ended_while_loading = None
        self._notified.clear()

    async def _page(self, at: int, head: int) -> tuple[Sequence[StoredEvent], int]:
        """The next messages of the log, without damaged ones, and the position up to which they
        go."""
        try:
            page = await self._store.log(at, head, PAGE)
            return page, page[-1].seq
        except LogDamaged as damage:
            damaged = max(damage.seq, at + 1)
            return await self._store.log(at, damaged - 1, PAGE), damaged

    def take_unanswerable(self) -> list[FollowedQuestion]:
        """Remove and return the questions that can no longer be answered."""
        return self._drop([q for q in self._questions.values() if self._is_unanswerable(q)])

    async def _restore_turns(self, messages: Mapping[int, Message]) -> None:
        """Apply what turns answered, and which turns ended. A wake can be settled in other ways
        without its work having ended."""
        wakes = await self._store.read(WakesAt(sorted({seq for _, seq in self._wakes})))
        of_turn = defaultdict[str, list[Wake]](list)
        for (seq, agent), wake in wakes.items():
            if wake.taken is not None and (agent, seq) in self._wakes:
                of_turn[wake.taken].append((agent, seq))
        for turn in await self._store.read(TurnsById(sorted(of_turn))) if of_turn else ():
            for seq in turn.sent:
                if seq in messages:
                    self._answer(messages[seq], [w for w in of_turn[turn.id] if w[1] < seq])
            if turn.end is not None:
                end = TurnEnd.model_validate_json(turn.end)
                self._close(dict.fromkeys(of_turn[turn.id], end))


def _woken(wakes: Mapping[tuple[int, str], StoredWake], seq: int) -> dict[Wake, str]:
    return {
        (agent, seq): wake.reply
        for (at, agent), wake in wakes.items()
        if at == seq and wake.reply is not None
    }
