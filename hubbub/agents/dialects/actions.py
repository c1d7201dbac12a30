"""The object of the dialect `final_output`: its fields, and the calls that it stands for."""

from __future__ import annotations

import json
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, model_validator

from hubbub.agents.dialects.scan import Doubtful
from hubbub.agents.dialects.words import arguments_text
from hubbub.agents.models.base import CallRequest
from hubbub.agents.tools.schema import wrong_arguments
from hubbub.agents.tools.tidy import StepNumber
from hubbub.agents.tools.ways_out import ASK_HUMAN, FORK, SHOW_PLAN
from hubbub.agents.turn.loop import FINISH
from hubbub.protocol.turns import WaitStrategy

__all__ = ["CompressedStep", "FinalOutput", "ParallelTool", "read_output"]

Action = Literal["CallTool", "CallToolsParallel", "ForkAutoAgent", "AskUser", "Plan", "Finish"]
Parameters = dict[str, JsonValue] | str | None
"""A text is passed on: it may be JSON, else the call is refused like any with broken arguments."""


class _Part(BaseModel):
    # Unknown keys are refused: who misspells `parameters` must not call the tool without any.
    model_config = ConfigDict(extra="forbid", frozen=True)


class ParallelTool(_Part):
    """One of several calls."""

    tool_name: Annotated[str, Field(min_length=1)]
    parameters: Parameters = None
    tool_id: str = ""


class CompressedStep(_Part):
    """A step in fewer words."""

    step_id: StepNumber
    compressed: str


class FinalOutput(_Part):
    """What the model does next. An empty field is the same as none."""

    action: Action
    reasoning: str | None = None
    selected_tool: str | None = None
    parameters: Parameters = None
    parallel_tools: tuple[ParallelTool, ...] | None = None
    wait_strategy: WaitStrategy | None = None
    message_to_user: str | None = None
    options: tuple[str, ...] | None = None
    discardable_steps: tuple[StepNumber, ...] = ()
    compressed_steps: tuple[CompressedStep, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, given: object) -> object:
        """Models fill in null for what an action does not need."""
        if not isinstance(given, dict):
            return given
        return {key: value for key, value in given.items() if value is not None}

    @model_validator(mode="after")
    def _fits_its_action(self) -> Self:
        """What the action needs is there, and nothing that would mean another action."""
        needed = _NEEDED.get(self.action)
        if needed is not None and not getattr(self, needed):
            raise ValueError(f"the action {self.action} needs {needed}")
        wrong = self._of_another_action()
        if wrong is not None:
            raise ValueError(f"the action {self.action} does not go with {wrong}")
        return self

    def _of_another_action(self) -> str | None:
        single, several = self.selected_tool, self.parallel_tools
        if several and self.action != "CallToolsParallel":
            return "parallel_tools"
        if single and self.action != "CallTool" and single != _TOOL.get(self.action):
            return f"selected_tool {single[:60]!r}"
        if self.parameters and self.action == "CallToolsParallel":
            return "parameters"
        return None

    def calls(self) -> tuple[CallRequest, ...]:
        """The calls that the loop is given."""
        match self.action:
            case "CallTool":
                return (CallRequest("", self.selected_tool or "", arguments_text(self.parameters)),)
            case "CallToolsParallel":
                return tuple(
                    CallRequest(t.tool_id, t.tool_name, arguments_text(t.parameters))
                    for t in self.parallel_tools or ()
                )
            case "ForkAutoAgent":
                return (CallRequest("", FORK, arguments_text(self.parameters)),)
            case "AskUser":
                asked: dict[str, JsonValue] = {"question": self.message_to_user}
                if self.options:
                    asked["options"] = list(self.options)
                return (CallRequest("", ASK_HUMAN, json.dumps(asked)),)
            case "Plan":
                plan = json.dumps({"plan": self.message_to_user})
                return (CallRequest("", SHOW_PLAN, plan),)
            case "Finish":
                return (CallRequest("", FINISH, json.dumps({"reason": self._reason()})),)

    def _reason(self) -> str:
        given = self.parameters.get("reason") if isinstance(self.parameters, dict) else None
        return given if isinstance(given, str) else self.message_to_user or ""


_NEEDED = {
    "CallTool": "selected_tool",
    "CallToolsParallel": "parallel_tools",
    "ForkAutoAgent": "parameters",
    "AskUser": "message_to_user",
    "Plan": "message_to_user",
}
_TOOL = {"ForkAutoAgent": FORK, "AskUser": ASK_HUMAN, "Plan": SHOW_PLAN, "Finish": FINISH}


def read_output(value: JsonValue) -> FinalOutput:
    """The object as it validates. Raises `Doubtful` that says what is wrong."""
    try:
        return FinalOutput.model_validate(value)
    except ValidationError as exc:
        raise Doubtful(wrong_arguments(exc)) from exc
