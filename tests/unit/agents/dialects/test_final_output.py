"""The dialect `final_output`: its actions and the calls that they stand for."""

from __future__ import annotations

import json

import pytest
from pydantic import JsonValue
from syrupy.assertion import SnapshotAssertion

from hubbub.agents.dialects.final_output import FinalOutputObject
from hubbub.agents.dialects.scan import AmbiguousText
from hubbub.agents.models.base import Completion, ToolSpec
from hubbub.agents.prompt_client import described_tools
from hubbub.agents.tools.call_runner import ToolPolicy
from hubbub.agents.tools.tidy_steps import TidySteps
from hubbub.agents.tools.toolbox import Toolbox
from hubbub.protocol.turns import Compressed, Step, ToolCallRecord, WaitStrategy

DIALECT = FinalOutputObject()
FINISH: dict[str, JsonValue] = {"action": "Finish", "message_to_user": "all done"}


def output(text: str = "", /, **fields: JsonValue) -> str:
    """An answer with this object, or with this text instead of one."""
    return f"<final_output>\n{text or json.dumps(fields)}\n</final_output>"


def calls(text: str) -> list[tuple[str, JsonValue]]:
    return [(c.name, json.loads(c.arguments)) for c in DIALECT.parse(text).calls]


def parse_error(text: str) -> str:
    with pytest.raises(AmbiguousText) as caught:
        DIALECT.parse(text)
    return str(caught.value)


def test_each_action_becomes_one_or_more_calls() -> None:
    cases: list[tuple[dict[str, JsonValue], list[tuple[str, JsonValue]]]] = [
        (
            {"action": "CallTool", "selected_tool": "add", "parameters": {"a": 1}},
            [("add", {"a": 1})],
        ),
        ({"action": "CallTool", "selected_tool": "look"}, [("look", {})]),
        (
            {
                "action": "CallToolsParallel",
                "parallel_tools": [
                    {"tool_name": "add", "parameters": {"a": 1}, "tool_id": "x"},
                    {"tool_name": "look"},
                ],
            },
            [("add", {"a": 1}), ("look", {})],
        ),
        (
            {"action": "ForkAutoAgent", "parameters": {"goal": "g", "timeout": 5}},
            [("fork", {"goal": "g", "timeout": 5})],
        ),
        (
            {"action": "AskUser", "message_to_user": "Which?", "options": ["a", "b"]},
            [("ask_human", {"question": "Which?", "options": ["a", "b"]})],
        ),
        ({"action": "AskUser", "message_to_user": "Why?"}, [("ask_human", {"question": "Why?"})]),
        (
            {"action": "Plan", "message_to_user": "First look."},
            [("show_plan", {"plan": "First look."})],
        ),
        (FINISH, [("finish", {"message": "all done"})]),
        ({"action": "Finish"}, [("finish", {})]),
        ({"action": "Finish", "parameters": {"reason": "r"}}, [("finish", {"reason": "r"})]),
        (
            {"action": "Finish", "selected_tool": "finish", "parameters": None},
            [("finish", {})],
        ),
    ]
    for fields, expected in cases:
        assert calls(output(**fields)) == expected
        assert {c.id for c in DIALECT.parse(output(**fields)).calls} <= {"", "x"}
    everything: dict[str, JsonValue] = dict.fromkeys(
        ("reasoning", "selected_tool", "parallel_tools", "wait_strategy", "compressed_steps")
    )
    assert calls(output(**everything, **FINISH)) == [("finish", {"message": "all done"})]
    for wait in ["all", "any", "majority"]:
        tools: JsonValue = [{"tool_name": "a", "tool_id": "1"}, {"tool_name": "b"}]
        text = output(action="CallToolsParallel", parallel_tools=tools, wait_strategy=wait)
        parsed = DIALECT.parse(text)
        assert parsed.wait == DIALECT.read(Completion(text=text)).wait == wait
        assert [c.id for c in parsed.calls] == ["1", ""]


def test_reasoning_step_marks_and_messages_accompany_an_action() -> None:
    shorter: JsonValue = [{"step_id": 2, "compressed": "nothing new"}]
    fields: dict[str, JsonValue] = {"discardable_steps": [1], "compressed_steps": shorter}
    text = f"<think>hm</think>{output(**FINISH, **fields, reasoning='enough')}"
    read = DIALECT.read(Completion(text=text))
    assert read.reasoning == "hm\n\nenough"
    assert read.discards == (1,)
    assert read.compresses == (Compressed(n=2, text="nothing new"),)
    fields = {"action": "CallTool", "selected_tool": "look", "message_to_user": "One moment"}
    assert DIALECT.parse(output(json.dumps(fields))).text == "One moment"
    assert DIALECT.parse(output(**FINISH)).text == ""


def test_one_object_is_read_whatever_surrounds_it() -> None:
    for text in [
        output(**FINISH), f"Done now.\n{output(**FINISH)}\nBye.",
        f"<final_output>```json\n{json.dumps(FINISH)}\n```</final_output>",
        f"```\n{output(**FINISH)}\n```", f"<FINAL_OUTPUT>{json.dumps(FINISH)}</Final_Output>",
        f"<final_output>{json.dumps(FINISH)}",
        f"<final_output>{json.dumps(FINISH)[:-1]}, }}</final_output>", json.dumps(FINISH),
        f"```json\n{json.dumps(FINISH)}\n```",
        f"<think>{output(action='Plan', message_to_user='x')}</think>{output(**FINISH)}",
        f"I put it into <final_output> as asked: {output(**FINISH)}",
    ]:  # fmt: skip
        assert calls(text) == [("finish", {"message": "all done"})]
    quoted = output(**FINISH)
    assert calls(output(action="Plan", message_to_user=quoted)) == [("show_plan", {"plan": quoted})]
    for text in ["Hello!", "[1]", "<think>hm"]:
        assert DIALECT.parse(text).calls == ()
    for opening in ("", "<final_output>"):
        assert DIALECT.parse(f"{opening}{json.dumps(FINISH)}").text == ""
    assert DIALECT.parse(f"Done now.{output(**FINISH)}").text == "Done now."
    parsed = DIALECT.parse("<think>hm</think>Hello!")
    assert (parsed.text, parsed.reasoning) == ("Hello!", "hm")


def test_an_invalid_object_is_reported_and_calls_nothing(snapshot: SnapshotAssertion) -> None:
    for text, reason in [
        (output(**FINISH) * 2, "two JSON objects"),
        (output(f"{json.dumps(FINISH)}{json.dumps(FINISH)}"), "</final_output> must follow"),
        (output("{'action': 'Finish'}"), "no JSON"), (output("Finish"), "no JSON object between"),
        ("<final_output>", "no JSON object between"),
        (f"<final_output {json.dumps(FINISH)}", "no JSON object between"),
        ('{"answer": 42}', "action"), (output(action="Fly"), "action"),
        (output(reasoning="x"), "action"), (output(action="CallTool"), "needs selected_tool"),
        (output(action="CallTool", selected_tool=["a"]), "selected_tool"),
        (output(action="CallTool", selected_tool="a", parameters=[1]), "parameters"),
        (output(action="CallTool", selected_tool="a", arguments={"x": 1}), "arguments"),
        (output(action="CallToolsParallel", parallel_tools=[]), "needs parallel_tools"),
        (output(action="CallToolsParallel", parallel_tools=[{}]), "tool_name"),
        (
            output(
                action="CallToolsParallel",
                parallel_tools=[{"tool_name": "a"}],
                wait_strategy="some",
            ),
            "wait_strategy",
        ),
        (
            output(action="Finish", parallel_tools=[{"tool_name": "a"}]),
            "does not go with parallel_tools",
        ),
        (output(action="Finish", selected_tool="a"), "does not go with selected_tool"),
        (
            output(
                action="CallToolsParallel", parallel_tools=[{"tool_name": "a"}], parameters="b"
            ),
            "does not go with parameters",
        ),
        (output(action="ForkAutoAgent"), "needs parameters"),
        (output(action="AskUser", options=["a"]), "needs message_to_user"),
        (output(action="AskUser", message_to_user="?", options=[1]), "options"),
        (output(action="Plan", message_to_user={"a": 1}), "message_to_user"),
        (output(action="Finish", discardable_steps=[0]), "discardable_steps"),
        (output(action="Finish", discardable_steps=[10**7]), "discardable_steps"),
        (output(action="Finish", compressed_steps=[{"step_id": 1}]), "compressed"),
    ]:  # fmt: skip
        assert reason in parse_error(text)
        read = DIALECT.read(Completion(text=text))
        assert (read.calls, read.text, read.discards) == ((), text, ())
        assert reason in read.notes[0]
    invalid = [output(f"{json.dumps(FINISH)}."), output(**FINISH) * 2, output("Finish")]
    assert [parse_error(text) for text in invalid] == snapshot


class TestQuestion:
    SPECS = tuple(
        ToolSpec(name, f"What {name} does.", {"type": "object"})
        for name in ("add", "fork", "ask_human", "decline", "show_plan", "finish")
    )

    def instructions(self, *names: str) -> str:
        return DIALECT.instructions([spec for spec in self.SPECS if spec.name in names])

    async def test_tools_with_an_action_of_their_own_are_described_as_actions(self) -> None:
        lines = DIALECT.instructions(self.SPECS).splitlines()
        listed = [json.loads(line)["name"] for line in lines if line.startswith('{"name')]
        assert listed == ["add", "decline"]
        for action in ("CallTool", "CallToolsParallel", "ForkAutoAgent", "AskUser", "Plan"):
            assert any(line.startswith(f"* {action}: ") for line in lines)
        assert "ForkAutoAgent" not in self.instructions("add", "ask_human", "finish")
        assert "AskUser" not in self.instructions("add", "finish")

    def test_tidy_steps_is_described_as_fields_once_there_are_more_than_five_steps(self) -> None:
        instructions = DIALECT.instructions([*self.SPECS, TidySteps().spec])
        assert "`discardable_steps`" in instructions
        assert "`compressed_steps`" in instructions
        assert "tidy_steps" not in instructions
        assert "discardable_steps" not in DIALECT.instructions(self.SPECS)
        steps = [Step(n=n, text="x") for n in range(1, 7)]
        for disabled in [False, True]:
            tool_policy = ToolPolicy(disabled=frozenset({"tidy_steps"} if disabled else ()))
            toolbox = Toolbox([], tool_policy, always=[TidySteps()])
            for taken, expected in ((steps[:5], False), (steps, not disabled)):
                specs = described_tools(toolbox.described, DIALECT, taken)
                assert ("discardable_steps" in DIALECT.instructions(specs)) is expected

    def test_a_step_is_shown_as_the_model_would_have_written_it(
        self, snapshot: SnapshotAssertion
    ) -> None:
        cases: list[tuple[list[str], list[JsonValue]]] = [
            (["add"], [{"a": 1}]), (["add", "look"], [{"a": 1}, {}]),
            (["finish"], [{"reason": "r"}]), (["ask_human"], [{"question": "q", "options": ["a"]}]),
            (["show_plan"], [{"plan": "p"}]), (["fork"], [{"goal": "g"}]),
        ]  # fmt: skip
        for names, arguments in cases:
            expected = list(zip(names, arguments, strict=True))
            made = tuple(
                ToolCallRecord(id=f"c{i}", name=name, arguments=given, result="ok")
                for i, (name, given) in enumerate(expected)
            )
            wait: WaitStrategy = "any" if len(made) > 1 else "all"
            step = Step(n=1, calls=made, wait=wait, reasoning="because")
            question = DIALECT.question("s", "p", [step], self.SPECS)
            content = question.messages[2]["content"] or ""
            parsed = DIALECT.parse(content)
            assert calls(content) == expected
            assert (parsed.wait, parsed.reasoning) == (wait, "because")
        all_keys: JsonValue = {"reason": "r", "question": "q", "options": ["o"], "plan": "p"}
        given_arguments: list[JsonValue] = [all_keys, {}, "{oops"]
        for given in given_arguments:
            for name in ("finish", "ask_human", "show_plan", "fork"):
                made = (ToolCallRecord(id="c", name=name, arguments=given),)
                assert DIALECT.calls(Step(n=1, calls=made)) == snapshot
        broken = ToolCallRecord(id="c", name="add", arguments="{oops", result="no")
        question = DIALECT.question("s", "p", [Step(n=1, calls=(broken,))], self.SPECS)
        (call,) = DIALECT.parse(question.messages[2]["content"] or "").calls
        assert call.arguments == "{oops"
        question = DIALECT.question("s", "p", [Step(n=1, text="Hello!")], self.SPECS)
        assert "one JSON object between <final_output>" in (question.messages[-1]["content"] or "")
