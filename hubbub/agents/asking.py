"""Asking the model what comes next in a turn: from recorded steps to an answer.

prompt and steps -> dialect (how tools are told and called) -> model -> dialect -> answer
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hubbub.agents.chat import chat_messages
from hubbub.agents.models.base import Answer, Model, Question
from hubbub.agents.tools.toolbox import Toolbox
from hubbub.protocol.turns import Step

__all__ = ["Asker"]


@dataclass(frozen=True, slots=True)
class Asker:
    """What one turn asks its model with."""

    model: Model
    toolbox: Toolbox
    system: str
    prompt: str

    async def ask(self, steps: Sequence[Step]) -> Answer:
        """What the model does after `steps`. Raises `ModelError`."""
        messages = chat_messages(self.system, self.prompt, steps)
        return await self.model.answer(Question(messages, self.toolbox.specs))
