"""Malformed answers of a model: the turn ends in order, and only valid calls run."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub import tool
from hubbub.agents.dialects.base import Dialect
from hubbub.agents.models.base import CallRequest, Completion
from hubbub.agents.prompt_client import DIALECTS
from hubbub.agents.tools.toolbox import Toolbox
from hubbub.agents.turn.loop import Command, End, Loop, LoopRules, QueryModel, Record, RunTools
from hubbub.config.agents import DialectName
from hubbub.protocol.turns import Compressed, Step
from tests.unit.agents.builders import answered
from tests.unit.agents.dialects.malformed import DIALECT_NAMES, KINDS, answer_text

SIZE = 200_000
each_dialect = pytest.mark.parametrize("name", DIALECT_NAMES)
FINISH = CallRequest("f", "finish", '{"reason": "enough"}')


class Notes:
    """A tool that records its arguments."""

    def __init__(self) -> None:
        self.taken: list[tuple[object, object]] = []

        @tool
        async def note(text: str, times: int) -> str:
            """Note a text so many times."""
            self.taken.append((text, times))
            return "noted"

        self.box = Toolbox([note])


async def turn(dialect: Dialect, box: Toolbox, answers: Sequence[Completion]) -> tuple[End, Loop]:
    """A turn in which the model gives these answers and then calls `finish`.

    Each question is built from the steps, as for a real model.
    """
    loop = Loop(LoopRules(), box.names)
    given = iter(answers)
    todo: list[Command] = loop.start()
    while True:
        command = todo.pop(0)
        match command:
            case QueryModel():
                question = dialect.question("s", "p", loop.steps, box.specs)
                json.dumps(question.messages).encode()
                answer = next(given, Completion(calls=(FINISH,)))
                todo += answered(loop, dialect.read(answer))
            case RunTools(step, calls):
                todo += loop.ran(await box.run("bot-m1", step.n, step.calls, calls))
            case Record(step):
                Step.model_validate_json(step.model_dump_json())
            case End():
                return command, loop


@pytest.mark.slow
@pytest.mark.behaviour("A-16")
@each_dialect
async def test_no_malformed_answer_crashes_a_turn_or_runs_a_call(name: DialectName) -> None:
    for kind in KINDS:
        notes = Notes()
        end, _ = await turn(DIALECTS[name], notes.box, [Completion(text=answer_text(kind, name))])
        assert notes.taken == [], kind
        assert end.outcome == "finished", kind


async def test_native_calls_with_broken_arguments_or_by_the_thousands_do_not_run() -> None:
    for arguments in [
        *("{", "[]", "7", '"x"', "null", "NaN", '{"text": "x"}', '{"text": 1e999, "times": 1}'),
        *("{" * 10**5, '{"text": "\\ud800", "times": "x"}', '{"a": ' + "9" * 6000 + "}"),
    ]:
        notes = Notes()
        broken = Completion(calls=(CallRequest("\ud800", "note", arguments),))
        end, loop = await turn(DIALECTS["native"], notes.box, [broken])
        assert notes.taken == []
        assert end.outcome == "finished"
        assert loop.steps[0].calls[0].error is not None
    notes = Notes()
    call = CallRequest("", "note", '{"text": "x", "times": 1}')
    _, loop = await turn(DIALECTS["native"], notes.box, [Completion(calls=(call,) * 5000)])
    assert notes.taken == []
    assert "5000 calls at once" in loop.steps[0].notes[0]


def test_thinking_is_removed_from_the_text_of_a_native_answer() -> None:
    read = DIALECTS["native"].read(Completion(text="<think>hm</think>Yes", reasoning="first"))
    assert (read.text, read.reasoning) == ("Yes", "first\n\nhm")
    assert DIALECTS["native"].read(Completion(text="1 < 2")).text == "1 < 2"


def test_step_marks_from_fields_and_calls_of_an_answer_are_combined() -> None:
    calls = tuple(
        CallRequest(f"{n}", "tidy_steps", f'{{"discard": [{n}], "compress": [{marks}]}}')
        for n, marks in ((2, '{"step": 4, "text": "d"}'), (3, '{"step": 5, "text": "e"}'))
    )
    given = Completion(calls=calls, discards=(1,), compresses=(Compressed(n=6, text="f"),))
    read = DIALECTS["native"].read(given)
    assert (read.discards, [c.n for c in read.compresses]) == ((1, 2, 3), [6, 4, 5])


PIECES = st.sampled_from(
    [
        *("TOOL_CALL", "TOOL_CALL ", "\nTOOL_CALL {", "<final_output>", "</final_output>", "\n"),
        *('{"tool_name": "note", ', '"parameters": {', '"text": "x", "times": 2', "}", "}}", ","),
        *('{"action": "CallTool", ', '"selected_tool": "note", ', "```", "```json\n", "<think>"),
        *("</think>", "[", "]", '"', "\\", " ", "null", '"tool_name"', ":", "> ", "<scratchpad>"),
    ]
)


@given(st.lists(PIECES | st.text(max_size=4), max_size=25).map("".join))
def test_any_call_read_from_a_text_is_written_in_it(text: str) -> None:
    for name in DIALECT_NAMES:
        read = DIALECTS[name].read(Completion(text=text))
        if name == "native":
            assert read.calls == ()
        for call in read.calls:
            assert call.name in text
            assert call.arguments == "{}" or isinstance(json.loads(call.arguments), object)
        DIALECTS[name].question("s", "p", [Step(n=1, text=read.text, calls=())], ())


@pytest.mark.slow
@pytest.mark.timeout(60)
@each_dialect
def test_long_repetitive_answers_are_parsed_in_linear_time(name: DialectName) -> None:
    """A parser that rescans the text would take many minutes."""
    for unit in [
        *('TOOL_CALL {"a": "', "TOOL_CALL {", "\nTOOL_CALL ", "TOOL_CALL\n", "<final_output>{"),
        *("<final_output>", '{"a":', "[", "{", '"', "\\", '\\"', ",", ", ", "```", "<think>"),
        *("</think>", "<", "\n", " ", "\n- ", "*", "1. ", "x", "TOOL_CALL{}\n", "\n\n```json\n"),
        *('TOOL_CALL {"tool_name": "a"}\n', '{"a": 1, ', '"a": 1,', "<think></think>"),
    ]:
        for text in (unit * (SIZE // len(unit)), f'TOOL_CALL {{"a": "{unit * (SIZE // 10)}'):
            DIALECTS[name].read(Completion(text=text))
            DIALECTS[name].read(Completion(text=f"<final_output>{text}"))
