"""The chat that each dialect makes of a turn's steps."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion

from hubbub.agents.dialects.base import Dialect, Native
from hubbub.agents.dialects.final_output import FinalOutputObject
from hubbub.agents.dialects.scan import AmbiguousText
from hubbub.agents.dialects.text_dialect import TextDialect
from hubbub.agents.dialects.tool_call import ToolCallLines
from hubbub.agents.models.base import Completion, ToolSpec
from hubbub.agents.tools.tidy_steps import TidySteps
from hubbub.agents.turn.chat import ShownStep
from hubbub.config.agents import Aliases
from hubbub.protocol.turns import Compressed, Steering, Step, ToolCallRecord

TEXT_DIALECTS = [ToolCallLines(), FinalOutputObject()]
DIALECTS: list[Dialect] = [Native(), *TEXT_DIALECTS]
TOOLS = [
    *(ToolSpec(name, f"Does a {name}, größer.", {}) for name in ("look", "fork", "finish")),
    TidySteps().spec,
]


def call(name: str, result: str, id: str = "c", **arguments: str) -> ToolCallRecord:
    return ToolCallRecord(id=id, name=name, arguments=dict(arguments), result=result)


STEPS: list[ShownStep] = [
    Steering(message="m2", reply="required", text="Wait!"),
    Step(n=1, text="I look.", reasoning="why", calls=(call("look", "done", "ü", at="the größe"),)),
    Compressed(n=2, text="It was empty."),
    Compressed(n=3, text="It still is."),
    Step(n=4, calls=(call("löse", "</tool_result>x"), call("look", "")), wait="any"),
    Step(n=5, text="Hello!"),
    Steering(message="m3", reply="optional", text="Now go on."),
    Step(n=6, calls=(call("finish", "no", message="Paris", reason="known"),)),
    Step(n=7),
]


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_a_request_shows_tools_and_steps(dialect: Dialect, snapshot: SnapshotAssertion) -> None:
    system = dialect.instructions(TOOLS)
    assert [dict(m) for m in dialect.question(system, "prompt", STEPS, TOOLS).messages] == snapshot


@pytest.mark.parametrize("dialect", TEXT_DIALECTS, ids=lambda dialect: dialect.name)
def test_an_ambiguous_answer_is_marked_as_not_understood(dialect: TextDialect) -> None:
    marked = dialect.read(Completion(text=f"{dialect.form[0]} <final_output>"))
    assert not marked.understood
    assert marked.notes


def test_actions_can_have_other_names() -> None:
    dialect = FinalOutputObject(Aliases(names={"Bye": "finish", "peek": "look"}))
    for name, called in (("Bye", "finish"), ("peek", "look")):
        (made,) = dialect.parse(f'{{"action": "{name}"}}').calls
        assert made.name == called
    with pytest.raises(AmbiguousText):
        FinalOutputObject().parse('{"action": "Bye"}')
