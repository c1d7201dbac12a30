"""A question that a program asks an agent: awaited for its answer, or read event by event."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass, field
from math import fsum
from typing import Any, Generic, TypeAlias, TypeVar

from pydantic import ValidationError

from hubbub.agents.inbox import TurnPlan
from hubbub.agents.output import Output
from hubbub.agents.program import TurnOptions
from hubbub.agents.tools.schema import argument_errors
from hubbub.agents.turn.hooks import TurnEvent, TurnInfo
from hubbub.client import Client
from hubbub.config.agents import ModelSettings
from hubbub.errors import HubbubError, OperationError
from hubbub.protocol import thread_ids
from hubbub.protocol.control import Requests
from hubbub.protocol.frames import Event, Signal
from hubbub.protocol.messages import Message
from hubbub.protocol.operations import InteractionPage, SendResult
from hubbub.protocol.turns import Turn

__all__ = [
    "Answer",
    "Ask",
    "NoAnswer",
    "QuestionInFlight",
    "QuestionRunner",
    "Tell",
    "pages_of",
    "turns_of",
]

T = TypeVar("T")
STOP_S = 5.0
"""Seconds that a question which is cancelled waits until nothing of it runs any more."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a question."""

    text: str
    """What the agent has said to who asked, its messages with a blank line between them; empty if
    it had nothing to say."""
    turn: Turn
    """The record of the agent's last turn: prompts, steps, tool calls and results, outcome."""
    messages: tuple[Message, ...]
    """Those of the text."""
    turns: tuple[Turn, ...]
    """All that the question set in motion, those of other agents too, oldest first."""

    @property
    def tokens(self) -> int:
        """Tokens that were read and written in all turns."""
        return sum(turn.tokens_in + turn.tokens_out for turn in self.turns)

    @property
    def cost(self) -> float | None:
        """US dollars of all turns; None if no model has a price."""
        known = [turn.cost_usd for turn in self.turns if turn.cost_usd is not None]
        return round(fsum(known), 12) if known else None

    def __str__(self) -> str:
        return self.text


class NoAnswer(HubbubError):
    """A question has none: its turn has failed, or says nothing that fits what was asked for.

    `outcome` is the turn's (`model_error`, `max_steps`, `no_action`, ...) or the code of what has
    kept the agent from a turn, `turn` the record, if there is one.
    """

    def __init__(self, agent: str, outcome: str, reason: str, turn: Turn | None = None):
        self.agent, self.outcome, self.reason, self.turn = agent, outcome, reason, turn
        super().__init__(f"{agent} has not answered ({outcome}): {reason}")


Tell: TypeAlias = Callable[[TurnEvent], None]


class Ask(Generic[T]):
    """`await` it for the answer, or go through its events with `async for`: not both at a time.

    After that `answer` has the text, the turn, tokens and cost. Cancelling it stops its turns.
    """

    def __init__(self, run: Callable[[Tell], Awaitable[tuple[T, Answer]]]):
        self._run = run
        self._answer: Answer | None = None

    @property
    def answer(self) -> Answer:
        """The answer. Raises `RuntimeError` before it is there."""
        if self._answer is None:
            raise RuntimeError("there is no answer yet: await the question first")
        return self._answer

    def __await__(self) -> Generator[object, None, T]:
        return self._value(_nobody).__await__()

    async def __aiter__(self) -> AsyncIterator[TurnEvent]:
        events = asyncio.Queue[TurnEvent | None]()

        async def run() -> None:
            try:
                await self._value(events.put_nowait)
            finally:
                events.put_nowait(None)

        running = asyncio.create_task(run())
        try:
            while (event := await events.get()) is not None:
                yield event
            await running
        finally:
            if not running.done():
                running.cancel()
                await asyncio.wait({running})

    async def _value(self, tell: Tell) -> T:
        value, self._answer = await self._run(tell)
        return value


def _nobody(event: TurnEvent) -> None:
    """No one reads the events."""


@dataclass(slots=True, eq=False)
class QuestionInFlight:
    """One that waits for its answer."""

    by: str
    agent: str
    output: Output[Any] | None
    settings: ModelSettings | None
    tell: Tell
    turn: TurnInfo | None = None
    """The agent's turn that runs."""
    interaction: str = ""
    """What it has set in motion; empty until it is sent."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    """A turn has ended, or a message has come: it may be answered."""


class QuestionRunner:
    """Asks for a program, and is what its agents run in (`AgentProgram`)."""

    def __init__(self, join: Callable[[str], Awaitable[Client]]):
        """`join` gives a client for a person."""
        self._join = join
        self._people: dict[str, Client] = {}
        self._arriving = asyncio.Lock()
        """One at a time: who asks two agents at once has one client."""
        self._locks: dict[tuple[str, str], asyncio.Lock] = {}
        self._open: dict[tuple[str, str], QuestionInFlight] = {}

    async def follow(self, client: Client) -> None:
        """What comes to a person or the operator: texts that are being written are handed on, all
        else is in the log."""
        written: dict[str, tuple[str, int, str]] = {}  # by agent: in which turn and step, and what
        async for item in client.events():
            match item:
                case Event(seq=seq):
                    await client.ack(seq)
                    self._look()
                case Signal(type="partial", sender=str(agent), data=dict(data)):
                    question = self._open.get((client.participant, agent))
                    match data:
                        case {"turn": str(turn), "step": int(step), "text": str(text)}:
                            *known, before = written.get(agent, ("", 0, ""))
                            before = before if known == [turn, step] else ""
                            written[agent] = turn, step, text
                            gained = text[len(before) :] if text.startswith(before) else text
                            if question is not None and question.turn is not None and gained:
                                question.tell(TurnEvent("text", question.turn, gained))

    async def answer(
        self, operator: Client, question: QuestionInFlight, text: str
    ) -> tuple[Any, Answer]:
        """Ask, and wait for the answer: the value that it says, and the answer itself."""
        key = question.by, question.agent
        async with self._locks.setdefault(key, asyncio.Lock()):
            answer = await self._answered(operator, question, text)
        output = question.output
        return (answer if output is None else _read(question.agent, output, answer)), answer

    async def _answered(self, operator: Client, question: QuestionInFlight, text: str) -> Answer:
        agent, person = question.agent, await self._person(question.by)
        self._open[question.by, agent] = question
        try:
            said = await person.call("send_text_message", to=agent, text=text)
            sent = SendResult.model_validate(said)
            if agent in sent.not_woken:
                raise NoAnswer(agent, sent.not_woken[agent], "it was not woken by the question")
            question.interaction = sent.message.interaction_id
            turns = None
            while turns is None:
                await question.changed.wait()
                question.changed.clear()
                turns = await turns_of(operator, question.interaction)
        except asyncio.CancelledError:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(STOP_S):
                    await _stop(operator, question)
            raise
        finally:
            del self._open[question.by, agent]
        own = [turn for turn in turns if turn.agent == agent]
        if not own:
            raise NoAnswer(agent, "stopped", "its turn was stopped before it began")
        shown = [await _said(person, id) for turn in own for id in turn.sent]
        messages = tuple(m for m in shown if m is not None and m.thread_id == sent.thread_id)
        turn = own[-1]
        answer = Answer("\n\n".join(each.text for each in messages), turn, messages, tuple(turns))
        assert turn.end is not None, "it is over"
        if turn.end.outcome != "finished" and (question.output is not None or not messages):
            raise NoAnswer(agent, turn.end.outcome, turn.end.reason, turn)
        return answer

    async def _person(self, name: str) -> Client:
        async with self._arriving:
            if name not in self._people:
                self._people[name] = await self._join(name)
            return self._people[name]

    def _look(self) -> None:
        for question in self._open.values():
            question.changed.set()

    # As the agents' program ---------------------------------------------------------------------

    def turn_options(self, plan: TurnPlan) -> TurnOptions:
        """What the question wants that a turn answers."""
        said = (*plan.incoming, *filter(None, [plan.original_request]))
        keys = ((m.sender_id, each) for m in said for each in thread_ids.members_of(m.thread_id))
        question = next((self._open[key] for key in keys if key in self._open), None)
        if question is None:
            return TurnOptions()
        return TurnOptions(output=question.output, settings=question.settings)

    def on_event(self, event: TurnEvent) -> None:
        """Hand an event on to whoever asked the agent, in later turns too."""
        interactions = {message.interaction_id for message in event.turn.messages}
        people = {message.sender_id for message in event.turn.messages}
        for question in self._open.values():
            its = question.by in people or question.interaction in interactions
            if its and question.agent == event.turn.agent:
                question.turn = event.turn
                question.tell(event)

    def turn_settled(self, plan: TurnPlan) -> None:
        """A turn is over."""
        self._look()


async def turns_of(operator: Client, interaction: str) -> Sequence[Turn] | None:
    """All turns of an interaction, oldest first; None while one runs or may begin."""
    # Before the messages: what ends a request stands among them, and wakes who waits for it.
    waits = Requests.model_validate(await operator.call("list_requests", limit=200))
    messages, begun = set[str](), list[str]()
    async for page in pages_of(operator, interaction):
        # `open`: a turn may have woken somebody and ended since the page's messages were read.
        if page.open or any(wake.state != "ended" for wake in page.wakes):
            return None
        messages |= {message.id for message in page.messages}
        messages |= {envelope.id for envelope in page.envelopes}
        begun += [turn.id for turn in page.turns if turn.id not in begun]
    if not messages.isdisjoint(request.id for request in waits.requests):
        return None
    turns = [Turn.model_validate(await operator.call("read_turn", id=id)) for id in begun]
    return sorted(turns, key=lambda turn: turn.started_at)


async def _stop(operator: Client, question: QuestionInFlight) -> None:
    """Stop the turns of a question that run or wait, and those that wake because of that."""
    while await turns_of(operator, question.interaction) is None:
        async for page in pages_of(operator, question.interaction):
            for turn in (wake.turn for wake in page.wakes if wake.state != "ended"):
                with contextlib.suppress(OperationError):  # it has just ended
                    await operator.call("stop", scope="turn", target=turn)
        await question.changed.wait()
        question.changed.clear()


async def pages_of(operator: Client, interaction: str) -> AsyncIterator[InteractionPage]:
    """What the operator may read of an interaction, page by page."""
    after: int | None = None
    more = bool(interaction)  # empty: the question was not sent
    while more:
        told = await operator.call("read_interaction", id=interaction, after=after)
        page = InteractionPage.model_validate(told)
        yield page
        after, more = page.upto, page.more


async def _said(client: Client, id: str) -> Message | None:
    """A message of a turn; None if it is not for who asks."""
    try:
        return Message.model_validate(await client.call("read_message", id=id))
    except OperationError:
        return None


def _read(agent: str, output: Output[T], answer: Answer) -> T:
    """The value of an answer. Raises `NoAnswer`."""
    said = answer.messages[-1].text if answer.messages else ""
    try:
        return output.read(said)
    except ValidationError as exc:
        reason = f"it says no {output.name}: {argument_errors(exc)}"
        raise NoAnswer(agent, "no_action", reason, answer.turn) from exc
