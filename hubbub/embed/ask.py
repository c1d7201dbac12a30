"""A program's question to an agent: awaited for its answer, or iterated event by event."""

from __future__ import annotations

import asyncio
import contextlib
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Sequence, Set
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
from hubbub.waiting import cancel

__all__ = [
    "Answer",
    "Ask",
    "NoAnswer",
    "OnEvent",
    "QuestionInFlight",
    "QuestionRunner",
    "pages_of",
    "turns_of",
]

T = TypeVar("T")
STOP_S = 5.0
"""Seconds a cancelled question waits for its turns to end."""
SOON_S = 0.2
"""Seconds until a question checks for an answer after an event of another interaction."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a question."""

    text: str
    """The agent's messages to the asker, separated by blank lines; empty if it sent none."""
    turn: Turn
    """The record of the agent's last turn: prompts, steps, tool calls and results, outcome."""
    messages: tuple[Message, ...]
    """The messages of `text`."""
    turns: tuple[Turn, ...]
    """All turns that the question caused, including those of other agents, oldest first."""

    @property
    def tokens(self) -> int:
        """Tokens read and written in all turns."""
        return sum(turn.tokens_in + turn.tokens_out for turn in self.turns)

    @property
    def cost(self) -> float | None:
        """Cost of all turns in US dollars; None if no model has a price."""
        costs = [turn.cost_usd for turn in self.turns if turn.cost_usd is not None]
        return round(fsum(costs), 12) if costs else None

    def __str__(self) -> str:
        return self.text


class NoAnswer(HubbubError):
    """A question got no answer: its turn failed, or its answer does not fit the output type.

    `outcome` is the turn's (`model_error`, `max_steps`, `no_action`, ...), or the code of the
    reason why the agent was not woken. `turn` is the record, if there is one.
    """

    def __init__(self, agent: str, outcome: str, reason: str, turn: Turn | None = None):
        self.agent, self.outcome, self.reason, self.turn = agent, outcome, reason, turn
        super().__init__(f"{agent} did not answer ({outcome}): {reason}")


OnEvent: TypeAlias = Callable[[TurnEvent], None]


class Ask(Generic[T]):
    """`await` it for the answer, or iterate over its events with `async for`, but not both at once.

    Afterwards `answer` has the text, the turn, tokens and cost. Cancelling it stops its turns.
    """

    def __init__(self, run: Callable[[OnEvent], Awaitable[tuple[T, Answer]]]):
        self._run = run
        self._answer: Answer | None = None
        self._is_asked = False

    def __del__(self) -> None:
        if not self._is_asked:
            text = "a question was never asked: await it, or iterate over it with `async for`"
            warnings.warn(text, RuntimeWarning, stacklevel=2, source=self)

    @property
    def answer(self) -> Answer:
        """The answer. Raises `RuntimeError` if there is none yet."""
        if self._answer is None:
            raise RuntimeError("there is no answer yet: await the question first")
        return self._answer

    def __await__(self) -> Generator[object, None, T]:
        return self._value(_ignore).__await__()

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
                await cancel(running)

    async def _value(self, on_event: OnEvent) -> T:
        self._is_asked = True
        value, self._answer = await self._run(on_event)
        return value


def _ignore(event: TurnEvent) -> None:
    pass


@dataclass(slots=True, eq=False)
class QuestionInFlight:
    """A question waiting for its answer."""

    by: str
    agent: str
    output: Output[Any] | None
    settings: ModelSettings | None
    on_event: OnEvent
    turn: TurnInfo | None = None
    """The agent's running turn."""
    interaction: str = ""
    """Its interaction; empty until the question is sent."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a turn ended or a message arrived, so that there can be an answer."""


class QuestionRunner:
    """Asks a program's questions, and is the `AgentProgram` of its agents."""

    def __init__(self, join: Callable[[str], Awaitable[Client]]):
        """`join` returns a client for a person."""
        self._join = join
        self._people: dict[str, Client] = {}
        self._join_lock = asyncio.Lock()
        """So that a person who asks two agents at once gets one client."""
        self._locks: dict[tuple[str, str], asyncio.Lock] = {}
        self._open: dict[tuple[str, str], QuestionInFlight] = {}
        self._later: asyncio.TimerHandle | None = None

    async def follow(self, client: Client) -> None:
        """Follow a client's events: partial texts are reported, anything else makes the questions
        check for an answer."""
        written: dict[str, tuple[str, int, str]] = {}  # by agent: turn, step, text so far
        async for item in client.events():
            match item:
                case Event(seq=seq, message=message):
                    await client.ack(seq)
                    self._wake_questions({message.interaction_id})
                case Signal(type="partial", sender=str(agent), data=dict(data)):
                    question = self._open.get((client.participant, agent))
                    match data:
                        case {"turn": str(turn), "step": int(step), "text": str(text)}:
                            *position, before = written.get(agent, ("", 0, ""))
                            before = before if position == [turn, step] else ""
                            written[agent] = turn, step, text
                            added = text[len(before) :] if text.startswith(before) else text
                            if question is not None and question.turn is not None and added:
                                question.on_event(TurnEvent("text", question.turn, added))

    async def answer(
        self, operator: Client, question: QuestionInFlight, text: str
    ) -> tuple[Any, Answer]:
        """Ask, wait for the answer, and return its value and the answer itself."""
        key = question.by, question.agent
        async with self._locks.setdefault(key, asyncio.Lock()):
            answer = await self._ask(operator, question, text)
        output = question.output
        return (answer if output is None else _read(question.agent, output, answer)), answer

    async def _ask(self, operator: Client, question: QuestionInFlight, text: str) -> Answer:
        agent, person = question.agent, await self._person(question.by)
        self._open[question.by, agent] = question
        try:
            result = await person.call("send_text_message", to=agent, text=text)
            sent = SendResult.model_validate(result)
            if agent in sent.not_woken:
                raise NoAnswer(agent, sent.not_woken[agent], "the question did not wake it")
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
        visible = [await _message(person, id) for turn in own for id in turn.sent]
        messages = tuple(m for m in visible if m is not None and m.thread_id == sent.thread_id)
        turn = own[-1]
        answer = Answer("\n\n".join(each.text for each in messages), turn, messages, tuple(turns))
        assert turn.end is not None, "the turn has ended"
        if turn.end.outcome != "finished" and (question.output is not None or not messages):
            raise NoAnswer(agent, turn.end.outcome, turn.end.reason, turn)
        return answer

    async def _person(self, name: str) -> Client:
        async with self._join_lock:
            if name not in self._people:
                self._people[name] = await self._join(name)
            return self._people[name]

    def _wake_questions(self, interactions: Set[str]) -> None:
        """Let the questions of these interactions check for an answer now, and the others soon: if
        each event had all of them check, many questions at once would take quadratic time."""
        for question in self._open.values():
            if not question.interaction or question.interaction in interactions:
                question.changed.set()
        if self._later is None:
            self._later = asyncio.get_running_loop().call_later(SOON_S, self._wake_all)

    def _wake_all(self) -> None:
        self._later = None
        for question in self._open.values():
            question.changed.set()

    # As the agents' program ---------------------------------------------------------------------

    def turn_options(self, plan: TurnPlan) -> TurnOptions:
        """The options of the question that a turn answers."""
        messages = (*plan.incoming, *filter(None, [plan.original_request]))
        keys = (
            (m.sender_id, each) for m in messages for each in thread_ids.members_of(m.thread_id)
        )
        question = next((self._open[key] for key in keys if key in self._open), None)
        if question is None:
            return TurnOptions()
        return TurnOptions(output=question.output, settings=question.settings)

    def on_event(self, event: TurnEvent) -> None:
        """Pass an event to the questions to its agent, also in later turns."""
        interactions = {message.interaction_id for message in event.turn.messages}
        people = {message.sender_id for message in event.turn.messages}
        for question in self._open.values():
            belongs = question.by in people or question.interaction in interactions
            if belongs and question.agent == event.turn.agent:
                question.turn = event.turn
                question.on_event(event)

    def turn_settled(self, plan: TurnPlan) -> None:
        """Check for answers after a turn has ended."""
        messages = (*plan.incoming, *filter(None, [plan.original_request]))
        self._wake_questions({message.interaction_id for message in messages})


async def turns_of(operator: Client, interaction: str) -> Sequence[Turn] | None:
    """All turns of an interaction, oldest first; None while one runs or can still begin."""
    # Read the open requests before the messages: the message that ends a request wakes its asker.
    waits = Requests.model_validate(await operator.call("list_requests", limit=200))
    messages, begun = set[str](), list[str]()
    async for page in pages_of(operator, interaction):
        # `open`: a turn can have woken another agent and ended since the page's messages were read.
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
    """Stop the question's running and waiting turns, and those woken by stopping them."""
    while await turns_of(operator, question.interaction) is None:
        async for page in pages_of(operator, question.interaction):
            for turn in (wake.turn for wake in page.wakes if wake.state != "ended"):
                with contextlib.suppress(OperationError):  # it just ended
                    await operator.call("stop", scope="turn", target=turn)
        await question.changed.wait()
        question.changed.clear()


async def pages_of(operator: Client, interaction: str) -> AsyncIterator[InteractionPage]:
    """An interaction as the operator can read it, page by page."""
    after: int | None = None
    more = bool(interaction)  # empty: the question was not sent
    while more:
        value = await operator.call("read_interaction", id=interaction, after=after)
        page = InteractionPage.model_validate(value)
        yield page
        after, more = page.upto, page.more


async def _message(client: Client, id: str) -> Message | None:
    """A message of a turn; None if the client cannot read it."""
    try:
        return Message.model_validate(await client.call("read_message", id=id))
    except OperationError:
        return None


def _read(agent: str, output: Output[T], answer: Answer) -> T:
    """The value of an answer. Raises `NoAnswer`."""
    text = answer.messages[-1].text if answer.messages else ""
    try:
        return output.read(text)
    except ValidationError as exc:
        reason = f"its answer is not a valid {output.name}: {argument_errors(exc)}"
        raise NoAnswer(agent, "no_action", reason, answer.turn) from exc
