"""The tools of every agent: ways out of a turn, and tidying its steps."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from pydantic import JsonValue

from hubbub.agents.dialects.base import with_step_marks
from hubbub.agents.dialects.text_dialect import TextDialect
from hubbub.agents.models.base import CallRequest, Completion
from hubbub.agents.prompt_client import DIALECTS, callable_names, described_tools
from hubbub.agents.tools.call_runner import ToolPolicy
from hubbub.agents.tools.standard_tools import standard_tools
from hubbub.agents.tools.tidy_steps import TidySteps
from hubbub.agents.tools.toolbox import Toolbox
from hubbub.errors import OperationError
from hubbub.ids import write_id
from hubbub.protocol.turns import Compressed, Step, ToolCallRecord
from tests.unit.agents.calling import ScriptedHub


def box(hub: ScriptedHub | None = None, tool_policy: ToolPolicy | None = None) -> Toolbox:
    return Toolbox([], tool_policy, always=(*standard_tools(hub or ScriptedHub()), TidySteps()))


async def run(
    tools: Toolbox, name: str, arguments: Mapping[str, JsonValue], n: int = 1
) -> tuple[str, str | None]:
    """The result of a call in step `n`, and its error code."""
    made = [ToolCallRecord(id="c", name=name, arguments=dict(arguments))]
    (result,) = await tools.run("bot-m1", n, made, made, thread_id="dm.ann.bot")
    return result.result, result.error


def steps(count: int) -> list[Step]:
    call = ToolCallRecord(id="c", name="look", arguments={}, result="seen")
    return [Step(n=n, calls=(call,)) for n in range(1, count + 1)]


@pytest.mark.behaviour("A-19")
class TestWaysOut:
    async def test_they_send_one_message_to_the_waking_thread_in_every_mode(self) -> None:
        cases: list[tuple[str, dict[str, JsonValue], str]] = [
            (
                "ask_human",
                {"question": "Which?", "options": ["red", "blue"]},
                "Which?\n1. red\n2. blue",
            ),
            ("ask_human", {"question": "Why?"}, "Why?"),
            ("decline", {"reason": "not my job"}, "I decline: not my job"),
            ("show_plan", {"plan": "First look."}, "First look."),
        ]
        for name, arguments, text in cases:
            hub = ScriptedHub()
            result, error = await run(box(hub), name, arguments)
            assert error is None
            assert "sent" in result
            sent: dict[str, JsonValue] = {"to": "dm.ann.bot", "text": text}
            assert hub.calls == [("send_text_message", write_id("bot-m1", 1, 0), "bot-m1", sent)]
        assert box().speaking == {"ask_human", "decline", "show_plan"}
        tools = box(tool_policy=ToolPolicy(mode="read_only"))
        assert {"ask_human", "decline", "finish"} <= {spec.name for spec in tools.specs}

    async def test_invalid_arguments_and_a_refusal_of_the_hub_are_errors(self) -> None:
        hub = ScriptedHub()
        cases: list[dict[str, JsonValue]] = [
            {}, {"question": ""}, {"question": "?", "options": "a"},
        ]  # fmt: skip
        for invalid in cases:
            _, error = await run(box(hub), "ask_human", invalid)
            assert error == "invalid_arguments"
        assert hub.calls == []
        hub = ScriptedHub(OperationError("hop_limit", "too far"))
        result, error = await run(box(hub), "decline", {"reason": "x"})
        assert (error, json.loads(result)["message"]) == ("hop_limit", "too far")

    @pytest.mark.behaviour("K-3")
    async def test_disabled_ones_are_neither_offered_nor_named_nor_callable(self) -> None:
        for name in ["ask_human", "decline", "show_plan", "tidy_steps"]:
            tools = box(tool_policy=ToolPolicy(disabled=frozenset({name})))
            assert name not in tools.names
            assert name not in {spec.name for spec in tools.specs}
            assert name not in tools.speaking
            assert name not in tools.for_turn().registry.near(name)
            assert (await run(tools, name, {}))[1] == "unknown_tool"
        dialect = DIALECTS["final_output"]
        assert isinstance(dialect, TextDialect)
        assert "AskUser" in dialect.instructions(described_tools(box().described, dialect, ()))
        tools = box(tool_policy=ToolPolicy(disabled=frozenset({"ask_human"})))
        assert "AskUser" not in dialect.instructions(described_tools(tools.described, dialect, ()))

    def test_a_dialect_omits_the_tools_that_it_replaces(self) -> None:
        for name, hidden in [
            ("native", "show_plan"),
            ("tool_call", "show_plan"),
            ("final_output", "tidy_steps"),
        ]:
            dialect = next(d for d in DIALECTS.values() if d.name == name)
            names = callable_names(box(), dialect)
            assert hidden not in names
            assert {"ask_human", "decline", "finish"} <= set(names)
            question = dialect.question(
                "s", "p", [], described_tools(box().described, dialect, steps(9))
            )
            assert hidden not in {spec.name for spec in question.tools}
            assert f'"{hidden}"' not in str(question.messages)


@pytest.mark.behaviour("A-20")
class TestTidying:
    def test_it_is_offered_after_more_than_five_steps(self) -> None:
        five, seven = (
            {s.name: s for s in described_tools(box().described, DIALECTS["native"], steps(count))}
            for count in (5, 7)
        )
        assert "tidy_steps" not in five
        assert seven["tidy_steps"].description.endswith("Steps so far: 1 look; 2 look.")

    async def test_it_counts_the_marked_steps_and_refuses_unknown_ones(self) -> None:
        shorter: JsonValue = [{"step": 2, "text": "nothing"}]
        assert await run(box(), "tidy_steps", {"discard": [1], "compress": shorter}, 7) == (
            "2 steps marked",
            None,
        )
        cases: list[dict[str, JsonValue]] = [
            {"discard": [7]}, {"discard": ["x"]}, {"discard": [0]}, {"compress": [{"step": 1}]},
        ]  # fmt: skip
        for invalid in cases:
            _, error = await run(box(), "tidy_steps", invalid, 7)
            assert error == "invalid_arguments"

    def test_its_valid_arguments_become_the_marks_of_the_step(self) -> None:
        given = {"discard": [1], "compress": [{"step": 2, "text": "two"}]}
        answer = Completion(calls=(CallRequest("c", "tidy_steps", json.dumps(given)),))
        for dialect in (DIALECTS["native"], DIALECTS["tool_call"]):
            read = dialect.read(answer)
            assert (read.discards, read.compresses) == ((1,), (Compressed(n=2, text="two"),))
        answer = Completion(calls=(CallRequest("c", "tidy_steps", '{"discard": ["x"]}'),))
        assert with_step_marks(answer).discards == ()
