"""The dialect `tool_call`: one line per call.

    TOOL_CALL {"tool_name": "add", "parameters": {"a": 1}}

Rules:

    * A call begins its line (after spaces, list marks, emphasis and fences). In the middle of a
      line, or after `>`, the word is only a mention.
    * All or nothing: if one call is invalid, none runs and the model gets the reason.
    * The marker is followed by one JSON object or a list of them, and nothing similar on that line.
    * An answer that consists of one JSON object is a call if it names a tool.
    * `name` and `arguments`, as in other formats, mean `tool_name` and `parameters`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Annotated

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, JsonValue, ValidationError

from hubbub.agents.dialects.scan import AmbiguousText, Marker, bare_value, scan
from hubbub.agents.dialects.text_dialect import Parsed, TextDialect, arguments_text, tools_as_json
from hubbub.agents.models.base import CallRequest, ToolSpec
from hubbub.agents.tools.schema import argument_errors
from hubbub.agents.tools.standard_tools import SHOW_PLAN
from hubbub.agents.turn.loop import FINISH
from hubbub.config.agents import DialectName
from hubbub.protocol.turns import Step

__all__ = ["ToolCallLines"]

_BEGIN = r"^[ \t*`#-]{0,32}(?:\d{1,3}[.)][ \t]{1,8})?TOOL_CALL\b"
_MARKER = rf"{_BEGIN}[\s*`:=]{{0,64}}(?:json\s{{1,16}})?(?=[\[{{])"
_LONE = re.compile(_BEGIN, re.MULTILINE)
_MORE = re.compile(r".*TOOL_CALL|[\s`*,;]{0,256}[{}\[\]]")

_EXAMPLE = '{"tool_name": "finish", "parameters": {"message": "your answer"}}'
_INTRODUCTION = f"""\
# How to call tools

A program parses your answers. To call a tool, write a line that begins with TOOL_CALL, followed \
by one JSON object:

TOOL_CALL {_EXAMPLE}

Every answer must have at least one such line. Several lines are several calls, which run at the \
same time. Write nothing after the last one: the results come in the next message. Only calls have \
an effect; other text is not sent to anyone.

The tools, with the JSON Schema of their parameters:

"""


class _TextCall(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    tool_name: Annotated[
        str, Field(min_length=1, validation_alias=AliasChoices("tool_name", "name"))
    ]
    parameters: Annotated[
        JsonValue, Field(validation_alias=AliasChoices("parameters", "arguments"))
    ] = None
    id: Annotated[str, Field(validation_alias=AliasChoices("tool_id", "id"))] = ""


class ToolCallLines(TextDialect):
    """The dialect `tool_call`."""

    name: DialectName = "tool_call"
    form = ("TOOL_CALL", "tool_name", "parameters")
    hides = frozenset({SHOW_PLAN})
    reminder = (
        'Answer with a line such as TOOL_CALL {"tool_name": "…", "parameters": {…}}; '
        "call `finish` that way if you are done."
    )

    def instructions(self, tools: Sequence[ToolSpec]) -> str:
        intro = _INTRODUCTION
        if tools and all(tool.name != FINISH for tool in tools):  # a role has to call its only tool
            example = json.dumps({"tool_name": tools[0].name, "parameters": {}})
            intro = intro.replace(_EXAMPLE, example)
        return intro + tools_as_json(tools)

    def parse(self, text: str) -> Parsed:
        scanned = scan(text, Marker(re.compile(_MARKER), _after))
        values = scanned.values
        if _LONE.search(scanned.text):
            raise AmbiguousText("TOOL_CALL is not followed by a JSON object")
        if not values and isinstance(bare := bare_value(scanned.text), dict):
            if not bare.keys() & {"tool_name", "name"}:
                raise AmbiguousText("a JSON object without TOOL_CALL before it is no call")
            values, scanned.text = [bare], ""
        if not values and "TOOL_CALL" in scanned.text:
            raise AmbiguousText("TOOL_CALL does not begin its line")
        calls = tuple(call for value in values for call in _calls(value))
        return Parsed(calls, scanned.text, scanned.thoughts)

    def calls(self, step: Step) -> str:
        lines = ({"tool_name": c.name, "parameters": c.arguments} for c in step.calls)
        return "\n".join(f"TOOL_CALL {json.dumps(line, ensure_ascii=False)}" for line in lines)


def _calls(value: JsonValue) -> list[CallRequest]:
    values = value if isinstance(value, list) else [value]
    if not values:
        raise AmbiguousText("the list after TOOL_CALL is empty")
    return [_call(each) for each in values]


def _call(value: JsonValue) -> CallRequest:
    try:
        call = _TextCall.model_validate(value)
    except ValidationError as exc:
        raise AmbiguousText(
            f"the object after TOOL_CALL has `tool_name` and `parameters`, nothing else: "
            f"{argument_errors(exc)}"
        ) from exc
    return CallRequest(call.id, call.tool_name, arguments_text(call.parameters))


def _after(text: str, end: int) -> int:
    """Reject anything on the line that could be another call, or a lone object below it."""
    if _MORE.match(text, end):
        raise AmbiguousText("something follows the JSON object; begin each call with TOOL_CALL")
    return end
