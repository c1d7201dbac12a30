"""Dialects of models on a real hub: equal steps, fallback, and malformed answers."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Sequence

import pytest
from pydantic import JsonValue

from hubbub.people.groups.turns import _lines
from hubbub.protocol.operations import Turns
from hubbub.protocol.turns import Step, ToolCallRecord, Turn
from hubbub.testing.model_server import (
    Refusal,
    Script,
    ScriptedAnswer,
    ScriptedCall,
    ScriptedUsage,
    ScriptRule,
    When,
)
from tests.interaction.agent_harness import call, finish, says, send
from tests.interaction.peers import Networks, config
from tests.interaction.scripted import TALK, ending, scene
from tests.unit.agents.dialects.malformed import DIALECT_NAMES, KINDS, answer_text

LIMITS: JsonValue = {"calls_per_second": 10_000, "burst": 10_000}
QUICK = config(network={"limits": LIMITS, "breaker": {"enabled": False}})
_numbers = itertools.count()


def new_model() -> dict[str, JsonValue]:
    """An endpoint with a new model name, as the process remembers what names support."""
    return {"model": f"new-{next(_numbers)}"}


def reads(limits: Sequence[int]) -> list[ScriptedAnswer]:
    return [says(call("read_thread", thread="direct_ann", limit=n)) for n in limits]


CONVERSATIONS: dict[str, tuple[int, list[ScriptedAnswer]]] = {
    "a reply": (1, [says(send("direct_ann", "hello <b>"), text="I greet her"), says(finish())]),
    "several calls and finish": (2, [says(send("ann", "1"), send("ann", "2"), finish("x"))]),
    "wrong calls": (
        1,
        [
            says(call("send_mesage", to="ann")),
            says(ScriptedCall(tool="send_text_message", arguments="{oops")),
            says(ScriptedCall(tool="send_text_message", arguments='["ann"]')),
            says(call("send_text_message", to="annn", text="x")),
            says(call("read_thread", thread="direct_ann", limit=3), call("fly", high=True)),
            says(send("ann", "there"), finish()),
        ],
    ),
    "a silent finish": (1, [says(finish("nothing")), says(send("ann", "sorry")), says(finish())]),
    "a question": (
        1,
        [says(call("ask_human", question="Which?", options=["a", "b"])), says(finish("asked"))],
    ),
    "a refusal": (1, [says(call("decline", reason="no")), says(finish())]),
    "no helper": (
        1,
        [says(call("fork", goal="g", timeout=5)), says(call("decline", reason="no"), finish())],
    ),
    "text, then a call": (1, [TALK, says(send("ann", "x"), finish())]),
    "text twice": (1, [TALK, TALK]),
    "a thought": (1, [says(send("ann", "x"), finish(), text="<think>hm</think>Well.")]),
    "many steps": (1, [*reads(range(1, 8)), says(send("ann", "read"), finish())]),
    "the same again and again": (2, [says(send("ann", "again"))] * 3),
}
"""The number of messages to Ann, and the answers of the model."""


async def converse(networks: Networks, dialect: str) -> dict[str, Turn]:
    """Run all conversations with a model of this dialect. Returns their turns."""
    rules = [
        ScriptRule(when=When.model_validate({"incoming": f"^{name}$"}), answer=[*answers])
        for name, (_, answers) in CONVERSATIONS.items()
    ]
    turns: dict[str, Turn] = {}
    settings: JsonValue = {"dialect": dialect}
    async with scene(networks, script=Script(rules=rules), file=QUICK, endpoint=settings) as s:
        for name, (messages, _) in CONVERSATIONS.items():
            turns[name] = await s.turn(name)
            for _ in range(messages):
                await s.heard()
        assert s.model.mistakes == []
        first, request = turns["a reply"], s.model.requests[0]
        assert bool(request.body.tools) == (dialect == "native")
        assert (first.start.dialect, first.system_prompt) == (dialect, request.system)
        assert {"send_text_message", "ask_human", "decline", "finish"} <= set(first.start.tools)
        assert f"dialect   {dialect}" in _lines(first)
    return turns


def comparable(turn: Turn) -> list[Step]:
    """The steps without times, token counts and the ids of the endpoint."""
    blank = {"at_ms": None, "duration_ms": None, "tokens_in": 0, "tokens_out": 0}
    return [
        step.model_copy(
            update={**blank, "finish_reason": None, "window": None, "calls": _comparable(step)}
        )
        for step in turn.steps
    ]


def _comparable(step: Step) -> tuple[ToolCallRecord, ...]:
    blank = {"id": "c", "at_ms": None, "duration_ms": None}
    return tuple(
        call.model_copy(update={**blank, "result": _VARIES.sub("", call.result or "")})
        for call in step.calls
    )


_VARIES = re.compile(r', "(show_plan|tidy_steps)"|"sent_at": "[^"]*"')
"""The differences in results: tools that a dialect does not need, and the time."""


@pytest.mark.behaviour("A-15")
async def test_the_same_conversation_leads_to_the_same_steps_in_each_dialect(
    in_memory: Networks,
) -> None:
    native, *others = [await converse(in_memory, dialect) for dialect in DIALECT_NAMES]
    for other in others:
        for name in CONVERSATIONS:
            assert comparable(other[name]) == comparable(native[name]), name
            assert other[name].end == native[name].end, name
            assert len(other[name].sent) == len(native[name].sent), name


@pytest.mark.behaviour("A-19")
@pytest.mark.parametrize("dialect", DIALECT_NAMES)
async def test_a_question_shows_its_options_and_the_answer_starts_a_turn(
    in_memory: Networks, dialect: str
) -> None:
    answers = [
        says(call("ask_human", question="Which one?", options=["red", "blue"]), finish("asked")),
        says(send("ann", "red it is"), finish()),
    ]
    settings: JsonValue = {"dialect": dialect, "stream": True}
    async with scene(in_memory, *answers, endpoint=settings) as s:
        await s.say("paint it")
        asked = (await s.ann.event())["message"]
        assert asked["content"] == "Which one?\n1. red\n2. blue"
        assert (asked["thread_id"], asked["cause_id"]) == ("dm.ann.bot", "bot-m1")
        await s.say("1")
        assert await s.heard() == "red it is"
        assert "Which one?" in s.model.requests[-1].prompt
        assert s.model.requests[-1].stream


@pytest.mark.behaviour("A-18", "A-19")
async def test_a_model_can_show_its_plan_and_wait_for_any_of_its_calls(
    in_memory: Networks,
) -> None:
    plan = {"action": "Plan", "message_to_user": "1. look\n2. tell"}
    looks = [call("read_thread", thread="direct_ann", limit=n) for n in (1, 2, 3)]
    answers = [
        ScriptedAnswer(text=f"<final_output>{json.dumps(plan)}</final_output>"),
        ScriptedAnswer(calls=looks, wait="any", dialect="final_output"),
        says(send("ann", "found"), finish()),
    ]
    async with scene(in_memory, *answers, endpoint={"dialect": "final_output"}) as s:
        turn = await s.turn()
        assert [await s.heard(), await s.heard()] == ["1. look\n2. tell", "found"]
        shown, looked, _ = turn.steps
        assert [c.name for c in shown.calls] == ["show_plan"]
        assert looked.wait == "any"
        assert {"cancelled", None} == {c.error for c in looked.calls}
        assert "waits for any of its calls" in _lines(turn)
        assert "cancelled" in s.told()


@pytest.mark.behaviour("A-20")
@pytest.mark.parametrize("dialect", DIALECT_NAMES)
async def test_steps_that_the_model_discards_are_not_shown_again(
    in_memory: Networks, dialect: str
) -> None:
    marks: JsonValue = {"discard": [1], "compress": [{"step": 2, "text": "nothing new"}]}
    tidy = says(ScriptedCall(tool="tidy_steps", arguments=marks))
    if dialect == "final_output":
        shorter = [{"step_id": 2, "compressed": "nothing new"}]
        output = {"action": "CallTool", "selected_tool": "list_channels", "discardable_steps": [1]}
        text = json.dumps({**output, "compressed_steps": shorter})
        tidy = ScriptedAnswer(text=f"<final_output>{text}</final_output>")
    answers = [*reads(range(1, 8)), tidy, says(send("ann", "x"), finish())]
    async with scene(in_memory, *answers, endpoint={"dialect": dialect}) as s:
        turn = await s.turn()
        assert turn.steps[7].discards == (1,)
        shown = "\n".join(str(m.model_dump()) for m in s.model.requests[-1].messages[2:])
        shown = shown.replace('"', "'").replace("\\'", "'")
        assert "nothing new" in shown
        assert [f"'limit': {n}" in shown for n in (1, 2, 3)] == [False, False, True]
        offered = [("tidy_steps" in request.tools) for request in s.model.requests[:8]]
        assert offered == [False] * 6 + [dialect != "final_output"] * 2


@pytest.mark.behaviour("A-17")
class TestFallback:
    REFUSED = Refusal(status=400, message="this model does not support tools")

    async def test_an_endpoint_that_refuses_tools_is_asked_in_a_text_dialect_from_then_on(
        self, in_memory: Networks
    ) -> None:
        answers = [says(send("ann", "hi"), finish())] * 3
        async with scene(in_memory, self.REFUSED, *answers, endpoint=new_model()) as s:
            turn = await s.turn()
            assert await s.heard() == "hi"
            assert (turn.start.dialect, turn.steps[0].dialect) == ("native", "tool_call")
            (note,) = turn.steps[0].notes
            assert "refuses tools" in note
            assert note.endswith("asked again in tool_call")
            assert f"note: {note}" in _lines(turn)
            assert "dialect   native, tool_call from step 1 on" in _lines(turn)
            second = await s.turn()
            assert second.start.dialect == "tool_call"
            assert "refuses tools" in second.steps[0].notes[0]
            await s.restart()
            await s.turn()
            assert [bool(r.body.tools) for r in s.model.requests] == [True, False, False, False]

    async def test_an_endpoint_that_ignores_tool_choice_is_asked_in_a_text_dialect(
        self, in_memory: Networks
    ) -> None:
        usage = ScriptedUsage(prompt_tokens=100, completion_tokens=7)
        talk = TALK.model_copy(update={"usage": usage})
        less = ScriptedUsage(prompt_tokens=10, completion_tokens=3)
        right = says(send("ann", "hi"), finish(), usage=less)
        async with scene(in_memory, talk, talk, right, endpoint=new_model()) as s:
            turn = await s.turn()
            assert ending(turn)[0] == "finished"
            text, calls = turn.steps
            assert (text.calls, text.notes) == ((), ())
            assert "although the request requires a call" in calls.notes[0]
            assert (calls.tokens_in, calls.tokens_out) == (110, 10)  # the wasted answer counts

    async def test_other_failures_to_call_a_tool_end_the_turn_without_a_fallback(
        self, in_memory: Networks
    ) -> None:
        many = says(*[send("ann", f"{n}") for n in range(65)])
        withheld = TALK.model_copy(update={"text": None, "finish_reason": "content_filter"})
        cut_off = TALK.model_copy(update={"text": None, "finish_reason": "length"})
        for answer in (many, withheld, cut_off):
            async with scene(in_memory, answer, answer, endpoint=new_model()) as s:
                assert ending(await s.turn())[0] == "no_action"
                assert all(request.body.tools for request in s.model.requests)
        long = Refusal(status=400, message="the prompt is too long for this model")
        cases: list[tuple[str, list[ScriptedAnswer | Refusal], dict[str, JsonValue], str]] = [
            ("texts that are not in a row", [TALK, *reads([1]), TALK], {}, "no_action"),
            ("text is allowed", [TALK, TALK], {"tool_choice": "auto"}, "no_action"),
            ("text in a text dialect too", [TALK, TALK, TALK], {}, "no_action"),
            ("another refusal", [long], {}, "model_error"),
            ("a configured dialect", [self.REFUSED], {"dialect": "native"}, "model_error"),
        ]
        for what, answers, settings, outcome in cases:
            endpoint: JsonValue = {**new_model(), **settings}
            async with scene(in_memory, *answers, endpoint=endpoint) as s:
                turn = await s.turn()
                assert ending(turn)[0] == outcome, what
                assert len(s.model.requests) == len(answers), what
                assert turn.end is not None
                assert turn.end.text == ("Hello there!" if outcome == "no_action" else None), what
        assert ending(turn)[1].endswith("set models.default.dialect to tool_call")


@pytest.mark.slow
@pytest.mark.behaviour("A-16")
@pytest.mark.parametrize("dialect", DIALECT_NAMES)
async def test_no_malformed_answer_crashes_an_agent(in_memory: Networks, dialect: str) -> None:
    kinds = list(KINDS)[::6]  # each defect, in one of its forms
    wrong = [
        ScriptRule(
            when=When.model_validate({"incoming": f"^kind {n}$", "step": 1}),
            times=1,
            answer=ScriptedAnswer(text=answer_text(kind, dialect), ignore_tool_choice=True),  # type: ignore[arg-type]  # one of the three
        )
        for n, kind in enumerate(kinds)
    ]
    script = Script(rules=[*wrong, ScriptRule(answer=says(send("ann", "well"), finish()))])
    async with scene(in_memory, script=script, file=QUICK, endpoint={"dialect": dialect}) as s:
        for n, kind in enumerate(kinds):
            turn = await s.say(f"kind {n}")
            assert await s.heard() == "well", kind
        await s.net.turn(turn)
        operator = await s.net.network.join("watcher", "service")
        listed = Turns.model_validate(await operator.call("list_turns", limit=200))
        assert [turn.outcome for turn in listed.turns] == ["finished"] * len(kinds)
        assert s.model.mistakes == []
