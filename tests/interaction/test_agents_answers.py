"""Answers of agents with a model: in one step, or as plain text if configured."""

from __future__ import annotations

import pytest

from hubbub.testing.model_server import ScriptedAnswer
from tests.interaction.agent_harness import call, said_to, says
from tests.interaction.peers import Networks
from tests.interaction.scripted import ending, scene

DIALECTS = pytest.mark.parametrize("dialect", ["native", "tool_call", "final_output"])
FINISH = says(call("finish", message="Rome", reason="known"))


@DIALECTS
async def test_one_step_answers_and_ends_the_turn(in_memory: Networks, dialect: str) -> None:
    async with scene(in_memory, FINISH, endpoint={"dialect": dialect}) as s:
        turn = await s.turn("the capital of Italy?")
        assert await said_to(s.ann) == "Rome"
        assert ending(turn) == ("finished", "known")
        assert (len(turn.steps), len(turn.sent)) == (1, 1)
        assert turn.steps[0].calls[0].result == "finished"
        assert s.model.requests[0].prompt.endswith("</conversation>\n\nAnswer ann now.")


async def test_a_message_without_recipients_goes_to_the_thread_of_the_wake(
    in_memory: Networks,
) -> None:
    sends = says(call("send_text_message", text="in a moment"), call("finish"))
    async with scene(in_memory, sends) as s:
        turn = await s.turn("hello?")
        assert await said_to(s.ann) == "in a moment"
        assert ending(turn)[0] == "finished"
        (tool,) = [t for t in s.model.requests[0].body.tools if "send" in t.function.name]
        assert tool.function.parameters["required"] == ["text"]


async def test_text_without_a_call_is_sent_as_the_answer_if_configured(
    in_memory: Networks,
) -> None:
    text = ScriptedAnswer(text="Rome it is.")
    async with scene(in_memory, text, final_text="send") as s:
        turn = await s.turn("the capital of Italy?")
        assert await said_to(s.ann) == "Rome it is."
        assert ending(turn) == ("finished", "Rome it is.")
        (record,) = turn.steps[0].calls
        assert (record.name, record.arguments) == ("finish", {"message": "Rome it is."})
        assert s.model.requests[0].body.tool_choice == "auto"
        assert "is sent as your answer" in s.model.requests[0].system


async def test_a_default_agent_is_offered_few_tools_and_can_pick_more(
    in_memory: Networks,
) -> None:
    picks = says(call("use_tools", names=["threads"]))
    async with scene(in_memory, picks, FINISH) as s:
        turn = await s.turn("what was said?")
        first, second = s.model.requests
        assert first.tools == ["send_text_message", "finish", "use_tools"]
        assert second.tools[:3] == first.tools, "the cached prefix of the prompt stays the same"
        picked = {"list_threads", "read_thread", "read_message", "list_mentions"}
        assert set(second.tools[3:]) == picked
        assert second.system == first.system
        assert {"remember", "ask_human", "create_channel", "delegate"} <= set(turn.start.tools)
