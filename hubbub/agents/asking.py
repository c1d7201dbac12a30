"""Asking the model what comes next in a turn: from recorded steps to an answer.

prompt and steps -> dialect (how tools are told and called) -> model -> dialect -> answer
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from hubbub.agents.chat import ALWAYS_SHOWN, project
from hubbub.agents.dialects.base import Dialect
from hubbub.agents.dialects.choice import DialectChoice
from hubbub.agents.models.base import Answer, Delta, Model, OnDelta, Question, ToolSpec
from hubbub.agents.tools.tidy import TIDY_STEPS, tidy_spec
from hubbub.agents.tools.toolbox import Toolbox
from hubbub.errors import ToolsRefused
from hubbub.protocol.turns import Steering, Step

__all__ = ["Asker", "Offers", "callable_names", "offered"]


class Offers(Protocol):
    """What a model may call at each point of a turn: a `Toolbox`, or a part of one."""

    def described(self, steps: Sequence[Step]) -> tuple[ToolSpec, ...]:
        """What a model is told of after `steps`."""
        ...


def callable_names(toolbox: Toolbox, dialect: Dialect) -> tuple[str, ...]:
    """The names that a model may call in a turn that begins in this dialect."""
    return tuple(name for name in toolbox.names if name not in dialect.hides)


def offered(toolbox: Offers, dialect: Dialect, steps: Sequence[Step]) -> tuple[ToolSpec, ...]:
    """What a model is told of its tools after `steps`."""
    specs = (s for s in toolbox.described(steps) if s.name not in dialect.hides)
    if len(steps) <= ALWAYS_SHOWN:  # there is nothing to tidy yet
        return tuple(s for s in specs if s.name != TIDY_STEPS)
    return tuple(tidy_spec(s, steps) if s.name == TIDY_STEPS else s for s in specs)


@dataclass(frozen=True, slots=True)
class Asker:
    """What one turn asks its model with."""

    model: Model
    toolbox: Offers
    system: str
    prompt: str
    choice: DialectChoice = field(default_factory=DialectChoice)
    closing: str = ""
    """What stands at the very end of the system message, after all that a dialect has to say."""

    @property
    def opening(self) -> str:
        """The system message of the first question, as the model reads it."""
        dialect = self.choice.current
        return self._closed(dialect.system(self.system, offered(self.toolbox, dialect, ())))

    def question(
        self, steps: Sequence[Step], dialect: Dialect, steering: Sequence[Steering] = ()
    ) -> Question:
        """What the model is asked after `steps`, and after what people have said since."""
        tools = offered(self.toolbox, dialect, steps)
        question = dialect.question(self.system, self.prompt, project(steps, steering), tools)
        if not self.closing:
            return question
        system, *rest = question.messages
        system = {**system, "content": self._closed(system["content"] or "")}
        return replace(question, messages=[system, *rest])

    def _closed(self, system: str) -> str:
        return f"{system}\n\n{self.closing}" if self.closing else system

    async def ask(
        self,
        steps: Sequence[Step],
        on_delta: OnDelta | None = None,
        steering: Sequence[Steering] = (),
    ) -> Answer:
        """What the model does after `steps`, and after what people have said since (`steering`).
        Raises `ModelError`.

        Where the endpoint proves not to know tools, the model is asked again in words, and from
        then on always; the answer's notes say so.
        """
        dialect = self.choice.current
        heard = _Attempts(on_delta, steering)
        try:
            answer = await self._asked(dialect, steps, heard)
        except ToolsRefused as exc:
            if not self._may_fall_back(dialect):
                raise
            return await self._asked_in_words(f"the endpoint refuses tools: {exc}", steps, heard)
        if not self._ignores_tools(dialect, steps, answer):
            return answer if steps else self._reminded(answer, dialect)
        why = (
            "the endpoint answers without calling a tool, although it is told that one is required"
        )
        return _with_cost_of(answer, await self._asked_in_words(why, steps, heard))

    async def _asked(self, dialect: Dialect, steps: Sequence[Step], heard: _Attempts) -> Answer:
        hear = heard.next() if heard.on_delta else None
        question = self.question(steps, dialect, heard.steering)
        return dialect.read(await self.model.answer(question, hear))

    async def _asked_in_words(self, why: str, steps: Sequence[Step], heard: _Attempts) -> Answer:
        self.choice.fall_back(why)
        dialect = self.choice.current
        answer = await self._asked(dialect, steps, heard)
        return replace(answer, notes=(f"{why}; asked again in {dialect.name}", *answer.notes))

    def _may_fall_back(self, dialect: Dialect) -> bool:
        return dialect.name == "native" and self.choice.may_fall_back

    def _ignores_tools(self, dialect: Dialect, steps: Sequence[Step], answer: Answer) -> bool:
        """Whether this is the second answer in a row without a call, where one is required."""
        twice = bool(steps) and not steps[-1].calls and not answer.calls
        return twice and self.choice.required and self._may_fall_back(dialect)

    def _reminded(self, answer: Answer, dialect: Dialect) -> Answer:
        """The first answer of a turn, with the reason why it was asked for in words."""
        if self.choice.lesson is None or dialect.name == "native":
            return answer
        return replace(answer, notes=(f"{dialect.name}: {self.choice.lesson}", *answer.notes))


class _Attempts:
    """Several requests for one answer: what all of them show, and their attempts in a row."""

    def __init__(self, on_delta: OnDelta | None, steering: Sequence[Steering]):
        self.on_delta, self.steering = on_delta, steering
        self._last = 0

    def next(self) -> OnDelta:
        """For another request: its attempts come after all that were heard of."""
        before = self._last

        def hear(delta: Delta) -> None:
            self._last = before + delta.attempt
            if self.on_delta is not None:
                self.on_delta(replace(delta, attempt=self._last))

        return hear


def _with_cost_of(wasted: Answer, answer: Answer) -> Answer:
    """The answer with what was spent on another one that was of no use."""
    known = [cost for cost in (wasted.cost_usd, answer.cost_usd) if cost is not None]
    return replace(
        answer,
        tokens_in=wasted.tokens_in + answer.tokens_in,
        tokens_out=wasted.tokens_out + answer.tokens_out,
        cost_usd=sum(known) if known else None,
    )
