"""The concierge: knows each participant's skills and combines their answers.

It has no knowledge of its own. It reads the participants' cards, asks an agent that looks things up
and one that calculates over the network, and shows how it got the answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from calculator import is_calculation
from manners import WELCOME, for_others, is_greeting, is_thanks, of_another_agent
from markdown_pages import words_of
from phrasing import as_calculation, plain_question, unaddressed, without_name
from questions import Plan, make_plan

from hubbub import Agent, Message
from hubbub.errors import OperationError
from hubbub.protocol.messages import Participant

__all__ = ["Concierge", "best_match", "introductions", "value_in", "welcome"]

GREETING = (
    "Hello! I am {name}. Ask me who can do what, or anything that needs several of us at once: "
    "“@{name} how many kilometres is the diameter of Jupiter plus the diameter of Saturn, in "
    "miles?” Write to me directly, or mention me in a channel."
)
LOOKS_UP, CALCULATES = "facts", "arithmetic"
"""Skills on the cards of agents that look up and calculate."""
ASK_S = 15.0
"""Seconds to wait for an answer."""
AWAY_S = 6.0
"""Seconds to wait for an offline participant: a network's agents need a moment to start."""
NOTHING = "I don't know"
AGAIN = "{name} is here again."
RECENT = 20
"""The number of latest broadcasts among which the greeting is not repeated."""
_WHO = re.compile(
    r"\A(?:who|what)(?:'s| is| are| else is)? (?:here|there|around|online|present|in this net)"
    r"|\bwho (?:can|could|knows|does|is able|do i ask|should i ask)\b|\bwho are you\b",
    re.IGNORECASE,
)
_LOST = re.compile(
    r"\A(?:help|what can (?:you|i)\b.*|(?:is )?any(?:one|body)(?: here| there| around)?)\Z",
    re.IGNORECASE,
)
MOST_LISTED = 12
"""Agents that a welcome lists."""
_VALUE = re.compile(r"\bis (?P<value>[-≈\d][^\[\n]*?)\.?\s*(?:\[|\Z)")
_RESULT = re.compile(r"(?:=|(?=≈))\s*(?P<result>[^=\n]+)\Z")


class Unanswered(Exception):
    """A participant could not help; the text is a sentence with its name and the reason."""


@dataclass(frozen=True)
class Answer:
    """A participant's answer."""

    who: str
    text: str

    def __str__(self) -> str:
        return f"- {self.who}: {self.text}"


class Concierge(Agent):
    """Answers people in full; other agents only if it has an answer for them."""

    def __init__(self, away_s: float = AWAY_S) -> None:
        """`away_s`: seconds that a question waits for an offline participant."""
        self._away_s = away_s

    async def on_start(self) -> None:
        greeting = GREETING.format(name=self.name)
        recent = await self.read_thread("broadcast", limit=RECENT)
        greeted = any(m.sender_id == self.name and m.text == greeting for m in recent)
        await self.broadcast(AGAIN.format(name=self.name) if greeted else greeting)

    async def on_direct(self, message: Message) -> str | None:
        return await self._answer(message)

    async def on_mention(self, message: Message) -> str | None:
        return await self._answer(message)

    async def on_broadcast(self, message: Message) -> str | None:
        if message.sender_kind != "human" or for_others(message, self.name):
            return None
        question = plain_question(message.text)
        if is_hello(message.text) or _WHO.search(question) or make_plan(message.text) is not None:
            return await self._answer(message)
        return None

    async def _answer(self, message: Message) -> str | None:
        if of_another_agent(message, self.name) or _is_late_answer(message):
            return None
        question = plain_question(without_name(message.text, self.name))
        others = [p for p in await self.participants() if p.id != self.name and p.kind != "service"]
        try:
            plan = make_plan(question)
            if plan is not None:
                return await self._work_out(plan, others)
            if is_calculation(question):
                answer = await self._ask(_skilled(others, CALCULATES), as_calculation(question))
                return f"{answer.who} says: {answer.text}"
            if message.sender_kind != "human":
                return None  # agents do not introduce themselves to each other
            names = {p.id: p.card.name for p in others}
            guest = names.get(message.sender_id) or message.sender_id
            others = [p for p in others if p.id != message.sender_id]
            if is_hello(message.text):
                return welcome(self.name, guest, others)
            if is_thanks(question):
                return WELCOME
            if not words_of(question):
                return welcome(self.name, guest, others)
            if _WHO.search(question):
                return introductions(self.name, question, others)
            return await self._pass_on(question, others)
        except Unanswered as reason:
            return f"I have no answer: {reason}"

    # Asking others ----------------------------------------------------------------------------

    async def _work_out(self, plan: Plan, others: Sequence[Participant]) -> str:
        """Look up the facts in the question, then have the result calculated."""
        lookups: list[Answer] = []
        values: list[str] = []
        for thing in plan.lookups:
            fact = await self._ask(_skilled(others, LOOKS_UP), thing)
            lookups.append(fact)
            if not plan.calculates:
                return f"{fact.who} says: {fact.text}"
            value = value_in(fact.text)
            if value is None:
                raise Unanswered(f"{fact.who} has no number for “{thing}”. It says: {fact.text}")
            values.append(value)
        total = await self._ask(_skilled(others, CALCULATES), plan.filled(values))
        result = _RESULT.search(total.text)
        if result is None:
            raise Unanswered(f"{total.who} could not do the sum.\n{total.text}")
        steps = "\n".join(str(step) for step in [*lookups, total])
        return f"{result['result']}\nHow we got there:\n{steps}"

    async def _pass_on(self, question: str, others: Sequence[Participant]) -> str:
        """Ask a participant whose card matches, else search. Raises Unanswered."""
        expert = best_match(question, [p for p in others if p.present])
        if expert is not None and expert.kind == "human":
            return f"{expert.id} may know: {expert.card.description}"
        helper = expert or _skilled(others, LOOKS_UP)
        answer = await self._ask(helper, question)
        if not answer.text.startswith(NOTHING):
            return f"{answer.who} says: {answer.text}"
        reason = f"{answer.who} says: {answer.text}"
        raise Unanswered(f"{reason}\nAsk “Who is here?” to see who can do what.")

    async def _ask(self, participant: Participant, text: str) -> Answer:
        """Ask a participant; if offline, it gets the question on arrival. Raises Unanswered."""
        try:
            within = ASK_S if participant.present else self._away_s
            answer = await self.ask(participant.id, text, within)
        except TimeoutError as error:
            if not participant.present:
                reason = f"{participant.id}, who could help, is not here at the moment."
                raise Unanswered(reason) from error
            raise Unanswered(f"{participant.id} did not answer in time.") from error
        except OperationError as error:
            raise Unanswered(f"I cannot reach {participant.id}: {error.message}") from error
        return Answer(participant.id, unaddressed(answer.text))


def _skilled(others: Sequence[Participant], skill: str) -> Participant:
    """An agent with this skill on its card, online if possible. Raises Unanswered."""
    able = [p for p in others if skill in p.card.skills and p.kind == "agent"]
    if not able:
        raise Unanswered(f"nobody in this network has the skill “{skill}”.")
    return next((p for p in able if p.present), able[0])


def _is_late_answer(message: Message) -> bool:
    """Whether an agent's message is an answer that arrived too late, and not a question."""
    if message.sender_kind == "human":
        return False
    sourced = message.text.rstrip().endswith("]")
    return sourced or value_in(message.text) is not None or message.text.startswith(NOTHING)


def value_in(answer: str) -> str | None:
    """The number, with its unit, in `The … of … is 142,984 km. [source]`."""
    match = _VALUE.search(answer)
    return match["value"].removeprefix("≈").strip() if match else None


def best_match(question: str, others: Sequence[Participant]) -> Participant | None:
    """The participant whose card has most of the question's words; None if no card has any."""
    asked = set(words_of(question))

    def shared(participant: Participant) -> int:
        card = " ".join([*participant.card.skills, participant.card.description])
        return len(asked & set(words_of(card)))

    best = max(others, key=shared, default=None)
    return best if best is not None and shared(best) else None


def introductions(me: str, question: str, others: Sequence[Participant]) -> str:
    """Introduce the online participants, or only those that match the question's subject.

    Matching participants are included even if they are offline.
    """
    asked = set(words_of(question)) - {"here", "online", "present"}
    fitting = [p for p in others if best_match(" ".join(asked), [p]) is not None]
    listed = fitting if asked and fitting else [p for p in others if p.present]
    lines = [_introduction(p) for p in listed]
    if not lines:
        return "There is nobody here besides you and me."
    head = "This may help:" if listed is fitting else f"I am {me}; besides you and me there are:"
    return "\n".join([head, *lines])


def is_hello(text: str) -> bool:
    """Whether somebody says hello, or does not know what to ask."""
    return is_greeting(text) or _LOST.match(plain_question(text)) is not None


def welcome(me: str, guest: str, others: Sequence[Participant]) -> str:
    """What can be asked here, and how. Nobody is mentioned: it wakes nobody."""
    agents = [p for p in others if p.kind == "agent"]
    if not agents:
        return f"Hello, {guest}! I am {me}, and no other agent is here yet."
    lines = [_introduction(p) for p in agents[:MOST_LISTED]]
    if len(agents) > MOST_LISTED:
        lines.append(f"- {len(agents) - MOST_LISTED} more")
    lines.append(f"- {me}, that is me: who can do what, and whatever needs several of us")
    how = f"Write to one of us directly, or mention us here: `@{agents[0].id}` and your question."
    return "\n".join([f"Hello, {guest}! You can ask:", *lines, "", how])


def _introduction(participant: Participant) -> str:
    card = participant.card
    skills = f" ({', '.join(card.skills)})" if card.skills else ""
    away = "" if participant.present else ", away at the moment"
    what = card.description or f"a {participant.kind}"
    return f"- {participant.id}{away}: {what}{skills}"
