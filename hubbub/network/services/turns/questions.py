"""What people wait for that was passed on: followed until somebody answers, or nobody will.

    a person's message requires a reply -> it wakes agents, whose messages wake others
      -> somebody answers it, or a notice names it: nobody waits any more
      -> the last turn of them all has ended: one notice

A turn that says nothing at all, or fails, is told of at once (`notices.py`). Here is what is left:
one has passed the question on and is done, and whom it passed it on to says nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hubbub.ids import interaction_id, parse_message_id
from hubbub.network.log import Entry, Log
from hubbub.network.ports import Store
from hubbub.network.queries import TurnsById, WakesAt
from hubbub.network.queues import Queues
from hubbub.network.services.requests import RequestService
from hubbub.network.services.turns.notices import is_with
from hubbub.network.state import NetworkState
from hubbub.network.stored import StoredWake
from hubbub.protocol.messages import Draft, Message, TranscriptMark
from hubbub.protocol.turns import TurnEnd

__all__ = ["FollowedQuestion", "OpenQuestions", "Wake"]

Wake = tuple[str, int]
"""An agent, and the position of the message that woke it."""

MOST = 4096
"""Questions that are followed: of more, those are let go that were asked longest ago."""
LATELY, PAGE = 1024, 128
"""Messages that a hub which starts looks through, and how many at once."""


@dataclass(eq=False)
class FollowedQuestion:
    """A person's message that required a reply and has had none."""

    seq: int
    thread_id: str
    person: str
    open: set[Wake] = field(default_factory=set)
    """Of it and all that descends from it: those whose turns have not ended."""
    said: list[int] = field(default_factory=list)
    """Positions of the messages of agents that descend from it."""
    ends: dict[str, TurnEnd] = field(default_factory=dict)
    """How the last turn of each agent ended."""

    def hears(self, said: Draft | Message) -> bool:
        """Whether it reaches the person where they have asked, or directly."""
        return is_with(said, self.thread_id, self.person)


class OpenQuestions:
    """Those of the last messages. What came before the hub's start is known once it is loaded."""

    def __init__(self, store: Store, state: NetworkState, queues: Queues, requests: RequestService):
        self._store, self._state, self._queues = store, state, queues
        self._requests = requests
        self._questions: dict[str, FollowedQuestion] = {}
        """By interaction, the oldest first."""
        self._wakes: dict[Wake, FollowedQuestion] = {}
        self._meanwhile: dict[Wake, TurnEnd] | None = {}
        """Wakes whose turns ended before all was loaded; None: it is."""
        self._told = set[str]()
        """Interactions of which people were told before that."""

    # What is said ---------------------------------------------------------------------------

    def committed(self, entries: Sequence[Entry]) -> list[FollowedQuestion]:
        """These messages are in the log. Returns the questions that nobody will answer now."""
        if self._meanwhile is not None:
            return []
        left = list[FollowedQuestion]()
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
            question = self._hear(entry.draft, entry.seq, interaction, woken, opens=opens)
            if question is not None and self._is_left(question):
                left.append(question)
        return self._drop(left)

    def _hear(
        self,
        said: Draft | Message,
        seq: int,
        interaction: str,
        woken: Mapping[Wake, str],
        *,
        opens: bool,
    ) -> FollowedQuestion | None:
        """The open question that the message belongs to, without having answered it."""
        if said.amends is not None:
            return None
        if opens:
            if said.by_person and "required" in woken.values():
                self._ask(interaction, FollowedQuestion(seq, said.thread_id, said.said_by), woken)
            elif said.sender_kind == "system":
                self._notice(said)
            if said.spoken_by is not None:
                self._drop([q for q in self._questions.values() if q.hears(said)])
            return None
        question = self._questions.get(interaction)
        if question is None:
            return None
        if question.hears(said) or self._is_for_people(said):
            self._drop([question])
            return None
        question.said.append(seq)
        self._open(question, woken)
        return question

    def _answer(self, said: Draft | Message, wakes: Iterable[Wake]) -> None:
        """A turn says something, which has taken these wakes: that answers all who hear it."""
        asked = dict.fromkeys(self._wakes[wake] for wake in wakes if wake in self._wakes)
        self._drop([question for question in asked if question.hears(said)])

    def _ask(self, interaction: str, question: FollowedQuestion, woken: Collection[Wake]) -> None:
        self._questions[interaction] = question
        self._open(question, woken)
        if len(self._questions) > MOST:
            self._drop([next(iter(self._questions.values()))])

    def _open(self, question: FollowedQuestion, woken: Collection[Wake]) -> None:
        question.open.update(woken)
        self._wakes.update(dict.fromkeys(woken, question))

    def _notice(self, said: Draft | Message) -> None:
        """The hub has told people about messages that it names."""
        named = said.content.get("messages") if isinstance(said.content, dict) else None
        for id in named if isinstance(named, list) else ():
            self.told(str(id))

    def _is_for_people(self, said: Draft | Message) -> bool:
        """Whether it is in other people's hands now: what they say opens something of its own."""
        ids = {*said.recipients, *said.mentions}
        return any(map(self._state.is_person, ids))

    # What ends ------------------------------------------------------------------------------

    def told(self, id: str) -> None:
        """Who said the message `id` knows that there is no answer to it."""
        interaction = interaction_id(parse_message_id(id) or 0)
        if self._meanwhile is not None:
            self._told.add(interaction)
        question = self._questions.get(interaction)
        self._drop([question] if question is not None else [])

    def over(self, agent: str, messages: Iterable[str], end: TurnEnd) -> list[FollowedQuestion]:
        """A turn about these messages has ended, and that is durable. Returns the questions that
        nobody will answer now."""
        wakes = [(agent, parse_message_id(id) or 0) for id in messages]
        if self._meanwhile is not None:
            self._meanwhile.update(dict.fromkeys(wakes, end))
            return []
        return self._drop([q for q in self._close(dict.fromkeys(wakes, end)) if self._is_left(q)])

    def _close(self, ended: Mapping[Wake, TurnEnd]) -> Collection[FollowedQuestion]:
        found = dict[FollowedQuestion, None]()
        for wake, end in ended.items():
            question = self._wakes.pop(wake, None)
            if question is not None:
                question.open.discard(wake)
                question.ends[wake[0]] = end
                found[question] = None
        return found

    def _is_left(self, question: FollowedQuestion) -> bool:
        return not question.open and not self._requests.any_open(question.said)

    def _drop(self, questions: list[FollowedQuestion]) -> list[FollowedQuestion]:
        for question in questions:
            self._questions.pop(interaction_id(question.seq), None)
            for wake in question.open:
                self._wakes.pop(wake, None)
        return questions

    # The start of the hub -------------------------------------------------------------------

    async def load(self, log: Log) -> None:
        """Learn what was open before. Raises `StoreUnavailable`: then it is to be called again."""
        self._questions.clear()
        self._wakes.clear()
        said = dict[int, Message]()
        at = max(0, log.head - LATELY)
        while at < log.head:
            page = await self._store.log(at, log.head, PAGE)
            wakes = await self._store.read(WakesAt([event.seq for event in page]))
            for event in page:
                message = said[event.seq] = Message.model_validate_json(event.body)
                of = message.interaction_id
                opens = of == interaction_id(event.seq)
                self._hear(message, event.seq, of, _woken(wakes, event.seq), opens=opens)
            at = page[-1].seq
            if at == log.head:  # more may be said meanwhile
                await self._hear_turns(said)
        self._close(self._meanwhile or {})
        self._drop([q for i, q in self._questions.items() if i in self._told])
        self._meanwhile = None
        self._told.clear()

    def left(self) -> list[FollowedQuestion]:
        """The questions that nobody will answer now."""
        return self._drop([q for q in self._questions.values() if self._is_left(q)])

    async def _hear_turns(self, said: Mapping[int, Message]) -> None:
        """What turns have said of these, and which have ended. What else a wake was settled by may
        go on."""
        wakes = await self._store.read(WakesAt(sorted({seq for _, seq in self._wakes})))
        of_turn = defaultdict[str, list[Wake]](list)
        for (seq, agent), wake in wakes.items():
            if wake.taken is not None and (agent, seq) in self._wakes:
                of_turn[wake.taken].append((agent, seq))
        for turn in await self._store.read(TurnsById(sorted(of_turn))) if of_turn else ():
            for seq in turn.sent:
                if seq in said:
                    self._answer(said[seq], [w for w in of_turn[turn.id] if w[1] < seq])
            if turn.end is not None:
                end = TurnEnd.model_validate_json(turn.end)
                self._close(dict.fromkeys(of_turn[turn.id], end))


def _woken(wakes: Mapping[tuple[int, str], StoredWake], seq: int) -> dict[Wake, str]:
    return {
        (agent, seq): wake.reply
        for (at, agent), wake in wakes.items()
        if at == seq and wake.reply is not None
    }
