"""The dialect `final_output`: one JSON object between <final_output> tags, with the next action.

Parsed strictly: exactly one object, only known keys, and all that its action requires. At the end
of the answer the closing tag is optional. The object can be in a code fence. An answer that
consists of the object alone needs no tags.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Annotated, Literal, Self, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from hubbub.agents.dialects.scan import AmbiguousText, Marker, bare_value, scan
from hubbub.agents.dialects.text_dialect import Parsed, TextDialect, arguments_text, tools_as_json
from hubbub.agents.models.base import CallRequest, ToolSpec
from hubbub.agents.prompt.escape import reveal
from hubbub.agents.tools.schema import argument_errors
from hubbub.agents.tools.standard_tools import ASK_HUMAN, FORK, SHOW_PLAN
from hubbub.agents.tools.tidy_steps import TIDY_STEPS, StepNumber
from hubbub.agents.turn.loop import FINISH
from hubbub.config.agents import Aliases, DialectName
from hubbub.protocol.turns import Compressed, Step, ToolCallRecord, WaitStrategy

__all__ = ["FinalOutput", "FinalOutputObject"]

# The JSON object: its fields and the calls they represent.


Action = Literal["CallTool", "CallToolsParallel", "ForkAutoAgent", "AskUser", "Plan", "Finish"]
_ACTION_NAMES = {action.lower(): action for action in get_args(Action)}
Parameters = dict[str, JsonValue] | str | None
"""A string is passed on; if it is not JSON, the call fails like any with invalid arguments."""


class _Part(BaseModel):
    # Unknown keys are rejected: a misspelled `parameters` must not result in a call without any.
    model_config = ConfigDict(extra="forbid", frozen=True)


class ParallelTool(_Part):
    """One of several calls."""

    tool_name: Annotated[str, Field(min_length=1)]
    parameters: Parameters = None
    tool_id: str = ""


class CompressedStep(_Part):
    """A step and its summary."""

    step_id: StepNumber
    compressed: str


class FinalOutput(_Part):
    """The model's next action. An empty field is equivalent to a missing one."""

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
    def _normalize(cls, given: object, info: ValidationInfo) -> object:
        """Models fill unused fields with null, and vary the spelling of actions."""
        if not isinstance(given, dict):
            return given
        fields = {key: value for key, value in given.items() if value is not None}
        names = info.context.all_names if isinstance(info.context, Aliases) else {}
        action = fields.get("action")
        if isinstance(action, str):
            name = names.get(action, action)
            fields["action"] = _ACTION_NAMES.get(name.replace("_", "").lower(), name)
            if action in names and fields["action"] == name:  # a tool, not an action
                fields = {**fields, "action": "CallTool", "selected_tool": name}
        message = fields.get("message_to_user")
        if (
            fields.get("action") == "Finish"
            and message is not None
            and not isinstance(message, str)
        ):
            fields["message_to_user"] = json.dumps(message, ensure_ascii=False)  # a typed answer
        return fields

    @model_validator(mode="after")
    def _check_fields(self) -> Self:
        """Require the action's fields, and reject those of other actions."""
        required = _REQUIRED.get(self.action)
        if required is not None and not getattr(self, required):
            raise ValueError(f"the action {self.action} needs {required}")
        misplaced = self._misplaced()
        if misplaced is not None:
            raise ValueError(f"the action {self.action} does not go with {misplaced}")
        return self

    def _misplaced(self) -> str | None:
        """A field that belongs to another action."""
        single, several = self.selected_tool, self.parallel_tools
        if several and self.action != "CallToolsParallel":
            return "parallel_tools"
        if single and self.action != "CallTool" and single != _TOOL.get(self.action):
            return f"selected_tool {single[:60]!r}"
        if self.parameters and self.action == "CallToolsParallel":
            return "parameters"
        return None

    def calls(self) -> tuple[CallRequest, ...]:
        """The tool calls that the action represents."""
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
                question: dict[str, JsonValue] = {"question": self.message_to_user}
                if self.options:
                    question["options"] = list(self.options)
                return (CallRequest("", ASK_HUMAN, json.dumps(question)),)
            case "Plan":
                plan = json.dumps({"plan": self.message_to_user})
                return (CallRequest("", SHOW_PLAN, plan),)
            case "Finish":
                return (CallRequest("", FINISH, json.dumps(self._finish_arguments())),)

    def _finish_arguments(self) -> dict[str, JsonValue]:
        given = self.parameters if isinstance(self.parameters, dict) else {}
        message = {} if self.message_to_user is None else {"message": self.message_to_user}
        return {**given, **message}


_REQUIRED = {
    "CallTool": "selected_tool",
    "CallToolsParallel": "parallel_tools",
    "ForkAutoAgent": "parameters",
    "AskUser": "message_to_user",
    "Plan": "message_to_user",
}
_TOOL = {"ForkAutoAgent": FORK, "AskUser": ASK_HUMAN, "Plan": SHOW_PLAN, "Finish": FINISH}


def read_output(value: JsonValue, aliases: Aliases | None = None) -> FinalOutput:
    """Validate the object. Raises `AmbiguousText` with the errors."""
    try:
        return FinalOutput.model_validate(value, context=aliases)
    except ValidationError as exc:
        raise AmbiguousText(argument_errors(exc)) from exc


_MARKER = r"(?i:<final_output\s{0,8}>)\s{0,64}(?:```\w{0,12}\s{0,16})?(?=\{)"
_CLOSE = re.compile(r"\s{0,64}(?:```)?\s{0,64}(?:</final_output\s{0,8}>|\Z)", re.IGNORECASE)
_DESCRIBED_AS_ACTIONS = frozenset({FINISH, ASK_HUMAN, SHOW_PLAN, FORK, TIDY_STEPS})
"""Tools described as actions, or as fields next to them."""

_INTRODUCTION = """\
# How to answer

A program reads your answers. Each answer is one JSON object between these tags, and nothing else:

<final_output>
{"action": "CallTool", "reasoning": "why, in a few words", "selected_tool": "NAME", \
"parameters": {}}
</final_output>

Take one action in each answer:

"""
_ACTIONS = {
    "": "* CallTool: call the tool `selected_tool` with `parameters`. The result comes in the next "
    "message.\n"
    '* CallToolsParallel: call several at once, `parallel_tools`: [{"tool_name": "NAME", '
    '"parameters": {}, "tool_id": "a"}]. `wait_strategy` is "all"; "any" or "majority" cancel the '
    "other calls as soon as one, or more than half, have succeeded.",
    ASK_HUMAN: "* AskUser: put the question `message_to_user` to the one who wrote to you, with "
    '`options`: ["…"] to choose from, or none. The answer comes as a new message, later.',
    SHOW_PLAN: "* Plan: show the plan `message_to_user` to the one who wrote to you, then go on.",
    FORK: "* ForkAutoAgent: give a part of the work to a helper. `parameters`: {schema}",
    FINISH: "* Finish: you are done, or there is nothing to do. `message_to_user` is your answer, "
    "if it is not sent yet; left out, nothing is said.",
}
_EXTRA_FIELDS = """

Beside any action you may give `discardable_steps`: [1] (numbers of earlier steps that you need no \
more) and `compressed_steps`: [{"step_id": 2, "compressed": "what you must remember of it"}].\
"""
_TOOLS = """

The tools, with the JSON Schema of their parameters:

"""


class FinalOutputObject(TextDialect):
    """The dialect `final_output`."""

    name: DialectName = "final_output"
    form = ("<final_output>", "</final_output>", "action", "selected_tool", "parameters", "Finish")
    beside = frozenset({TIDY_STEPS})
    reminder = (
        "Answer with one JSON object between <final_output> and </final_output>, with `action` and "
        "what it needs; the action Finish if you are done."
    )

    def __init__(self, aliases: Aliases | None = None):
        """`aliases` are alternative names of actions."""
        self._aliases = aliases

    def instructions(self, tools: Sequence[ToolSpec]) -> str:
        specs = {tool.name: tool for tool in tools}
        actions = [
            text.replace("{schema}", specs[name].offered_text if name else "")
            for name, text in _ACTIONS.items()
            if not name or name in specs
        ]
        extra = _EXTRA_FIELDS if TIDY_STEPS in specs else ""
        others = [tool for tool in tools if tool.name not in _DESCRIBED_AS_ACTIONS]
        return _INTRODUCTION + "\n".join(actions) + extra + _TOOLS + tools_as_json(others)

    def parse(self, text: str) -> Parsed:
        scanned = scan(text, Marker(re.compile(_MARKER), _after))
        values = scanned.values
        if not values and isinstance(bare := bare_value(scanned.text), dict):
            values, scanned.text = [bare], ""
        if len(values) > 1:
            raise AmbiguousText("there are two JSON objects; give exactly one")
        if values:
            return _parsed(read_output(values[0], self._aliases), scanned.text, scanned.thoughts)
        if "final_output" in scanned.text.lower():
            raise AmbiguousText("there is no JSON object between <final_output> tags")
        return Parsed((), scanned.text, scanned.thoughts)

    def calls(self, step: Step) -> str:
        reasoning: dict[str, JsonValue] = {"reasoning": step.reasoning} if step.reasoning else {}
        output = {"action": "", **reasoning, **_action(step)}
        return f"<final_output>\n{json.dumps(output, ensure_ascii=False)}\n</final_output>"


def _parsed(output: FinalOutput, text: str, thoughts: str) -> Parsed:
    message = output.message_to_user if output.action in _WITHOUT_MESSAGE else None
    return Parsed(
        calls=output.calls(),
        text=text or message or "",
        reasoning="\n\n".join(filter(None, (thoughts, output.reasoning))),
        wait=output.wait_strategy or "all",
        discards=output.discardable_steps,
        compresses=tuple(
            Compressed(n=c.step_id, text=reveal(c.compressed)) for c in output.compressed_steps
        ),
    )


_WITHOUT_MESSAGE = ("CallTool", "CallToolsParallel", "ForkAutoAgent")
"""Actions that do not use `message_to_user`; it is recorded like any text next to calls."""


def _action(step: Step) -> dict[str, JsonValue]:
    """The fields for the calls of a step."""
    if len(step.calls) > 1:
        parallel: list[JsonValue] = [
            {"tool_name": c.name, "parameters": c.arguments, "tool_id": c.id} for c in step.calls
        ]
        return {
            "action": "CallToolsParallel",
            "parallel_tools": parallel,
            "wait_strategy": step.wait,
        }
    return _single(step.calls[0])


def _single(call: ToolCallRecord) -> dict[str, JsonValue]:
    given = call.arguments if isinstance(call.arguments, dict) else {}
    match call.name:
        case "finish":
            message = {"message_to_user": given["message"]} if given.get("message") else {}
            rest = {name: value for name, value in given.items() if name != "message"}
            return {"action": "Finish", **message, **({"parameters": rest} if rest else {})}
        case "ask_human":
            question, options = given.get("question", ""), given.get("options", [])
            return {"action": "AskUser", "message_to_user": question, "options": options}
        case "show_plan":
            return {"action": "Plan", "message_to_user": given.get("plan", "")}
        case "fork":
            return {"action": "ForkAutoAgent", "parameters": call.arguments}
    return {"action": "CallTool", "selected_tool": call.name, "parameters": call.arguments}


def _after(text: str, end: int) -> int:
    close = _CLOSE.match(text, end)
    if close is None:
        raise AmbiguousText("after the JSON object </final_output> must follow")
    return close.end()
