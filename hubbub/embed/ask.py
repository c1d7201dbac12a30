"""A question that a program asks an agent: awaited for its answer, or read event by event."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from hubbub.agents.turn.hooks import TurnEvent
from hubbub.errors import HubbubError
from hubbub.protocol.messages import Message
from hubbub.protocol.turns import Turn

__all__ = ["Answer", "Ask", "NoAnswer", "Tell"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a question."""

    text: str
    """What the agent has said to who asked, its messages with a blank line between them; empty if
    it had nothing to say."""
    turn: Turn
    """The record: prompts, steps, tool calls and results, outcome."""
    messages: tuple[Message, ...]
    """Those of the text."""

    @property
    def tokens(self) -> int:
        """Tokens that were read and written."""
        return self.turn.tokens_in + self.turn.tokens_out

    @property
    def cost(self) -> float | None:
        """US dollars; None if the model has no price."""
        return self.turn.cost_usd

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

    After that `answer` has the text, the turn, tokens and cost. Cancelling it stops the turn.
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
