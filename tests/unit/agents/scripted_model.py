"""A model without an endpoint, with answers that a test gives."""

from __future__ import annotations

from collections.abc import Sequence

from hubbub.agents.models.base import Completion, CompletionRequest, Delta, OnDelta
from hubbub.errors import ModelError

__all__ = ["ScriptedModel"]


class ScriptedModel:
    """Gives these answers in order, the last one again and again. Errors are raised."""

    name = "scripted"

    def __init__(self, *answers: Completion | ModelError, deltas: Sequence[Delta] = ()):
        self.questions: list[CompletionRequest] = []
        self.closed = False
        self._answers, self._deltas = list(answers), deltas

    async def answer(
        self, question: CompletionRequest, on_delta: OnDelta | None = None
    ) -> Completion:
        self.questions.append(question)
        if on_delta is not None:
            for delta in self._deltas:
                on_delta(delta)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, ModelError):
            raise answer
        return answer

    async def close(self) -> None:
        self.closed = True
