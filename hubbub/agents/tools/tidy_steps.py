"""`tidy_steps`: a model marks earlier steps that it need not be shown again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated

from pydantic import Field, JsonValue

from hubbub.agents.models.base import ToolSpec
from hubbub.agents.tools.base import CallSite, ReadingTool, ToolFailed
from hubbub.agents.tools.schema import ToolArguments
from hubbub.agents.turn.chat import PROTECTED_STEPS
from hubbub.protocol.turns import Step
from hubbub.wording import shortened

__all__ = ["TIDY_STEPS", "Shorter", "TidyArguments", "TidySteps", "tidy_spec"]

TIDY_STEPS = "tidy_steps"
_SHOWN_WORDS = 60

StepNumber = Annotated[int, Field(ge=1, le=10**6)]


class Shorter(ToolArguments):
    """A step in fewer words."""

    step: StepNumber
    """The step's number."""
    text: str
    """All that you need to remember of it."""


class TidyArguments(ToolArguments):
    """The arguments of `tidy_steps`."""

    discard: tuple[StepNumber, ...] = ()
    """Numbers of steps that you need no more."""
    compress: tuple[Shorter, ...] = ()
    """Steps of which a few words are enough."""


class TidySteps(ReadingTool):
    """The tool. The marks take effect where steps are shown: see `turn.chat.project`."""

    name = TIDY_STEPS

    def __init__(self) -> None:
        self.spec = TidyArguments.spec_of(
            TIDY_STEPS,
            "Leave earlier steps out of what you are shown, or replace them by your "
            "own words, when there is too much to read. Keep in words what you have sent; the "
            "last ones stay as they are.",
        )

    async def run(self, arguments: Mapping[str, JsonValue], site: CallSite) -> str:
        """Confirm what was marked. Raises `ToolFailed` for steps that do not exist."""
        marks = TidyArguments.read(arguments)
        numbers = {*marks.discard, *(c.step for c in marks.compress)}
        unknown = sorted(n for n in numbers if n >= site.step)
        if unknown:
            message = (
                f"there is no earlier step {unknown[0]}: the steps so far are 1 to {site.step}"
            )
            raise ToolFailed(message, error="invalid_arguments", retry=True)
        return f"{len(numbers)} steps marked" if numbers else "nothing was marked"


def tidy_spec(spec: ToolSpec, steps: Sequence[Step]) -> ToolSpec:
    """The tool's description with the steps that can be marked, by number."""
    shown = (f"{step.n} {_about(step)}" for step in steps[:-PROTECTED_STEPS])
    return replace(spec, description=f"{spec.description} Steps so far: {'; '.join(shown)}.")


def _about(step: Step) -> str:
    names = ", ".join(dict.fromkeys(call.name for call in step.calls)) or "no call"
    return shortened(names, _SHOWN_WORDS)
