"""Agents with a small context window, on a real hub."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import JsonValue

from hubbub.people.groups.turns import _lines
from hubbub.protocol.turns import Turn
from hubbub.testing.model_server import (
    ModelServer,
    Refusal,
    Script,
    ScriptedAnswer,
    ScriptedUsage,
    ScriptRule,
    When,
)
from tests.interaction.agent_harness import call, finish, says, send
from tests.interaction.peers import Networks
from tests.interaction.scripted import Config, ending, scene
from tests.interaction.windows import DESK, LONG, chatter, layers, size_of

LIST_TOOLS: JsonValue = ["send_text_message", "read_thread"]
OK = says(send("ann", "yes"), finish())


@pytest.mark.behaviour("A-21")
@pytest.mark.parametrize("dialect", ["native", "tool_call", "final_output"])
async def test_older_messages_are_cut_and_the_record_shows_it(
    in_memory: Networks, dialect: str
) -> None:
    endpoint: JsonValue = {"dialect": dialect, "context_window": "4k"}
    async with scene(in_memory, OK, file=DESK, endpoint=endpoint, tools=LIST_TOOLS) as s:
        await chatter(s.net, 10)
        turn = await s.turn("still there?")
        assert turn.steps, turn.end
        step, request = turn.steps[0], s.model.requests[-1]
        assert turn.prompt == request.prompt
        assert turn.system_prompt == request.system
        assert "still there?" in request.prompt
        assert [f'id="m{n}"' in request.prompt for n in (1, 10)] == [False, True]
        assert step.window is not None
        assert (step.window.size, step.window.reserve, step.window.exact) == (4096, 1024, False)
        assert layers(step)["history"][1] > 1000
        assert size_of(request) <= 3072
        (line,) = [line for line in _lines(turn) if line.startswith("window ")]
        assert "of 4096 tokens, 1024 reserved for the answer, estimated: system " in line
        assert "history " in line
        assert " cut)" in line


@pytest.mark.behaviour("A-22")
async def test_an_unknown_window_cuts_nothing_and_openai_models_are_counted_exactly(
    in_memory: Networks,
) -> None:
    async with scene(in_memory, OK, OK) as s:
        turn = await s.turn()
        assert turn.steps[0].window is not None
        assert turn.steps[0].window.size is None
        unknown = "window    size unknown, nothing cut: "
        assert any(line.startswith(unknown) for line in _lines(turn))
        await s.restart(endpoint={"model": "gpt-4o-mini", "context_window": "128k"})
        turn = await s.turn()
        assert turn.steps[0].window is not None
        assert turn.steps[0].window.exact
        assert any("4096 reserved for the answer, counted: system" in line for line in _lines(turn))


@pytest.mark.behaviour("A-21")
async def test_a_window_without_room_for_required_parts_ends_the_turn_without_a_request(
    in_memory: Networks,
) -> None:
    async with scene(in_memory, endpoint={"context_window": 600}, tools=LIST_TOOLS) as s:
        turn = await s.turn("hello")
        outcome, reason = ending(turn)
        assert outcome == "model_error"
        assert "raise models.default.context_window if the model has more, or" in reason
        assert "the context window of 600 tokens is too small" in reason
        assert s.model.requests == []
        assert "hello" in (turn.prompt or "")


# Long turns -------------------------------------------------------------------------------------

READS = [says(call("read_thread", thread="channel_desk", limit=n)) for n in range(1, 9)]
"""Eight steps whose results are long."""
SUMMARY = When.model_validate({"system": "^You take notes"})
NOTES = ScriptedAnswer(
    text="I have read four times.",
    ignore_tool_choice=True,
    usage=ScriptedUsage(prompt_tokens=1000, completion_tokens=7),
)
SENT = "[my step 1, in fewer words] send_text_message("


async def long_turn(
    networks: Networks, notes: ScriptedAnswer | Refusal, **context: Any
) -> tuple[Turn, ModelServer, str]:
    """A turn too long for the window, its model, and the steps that the last request shows."""
    steps = [says(send("ann", f"wait {LONG * 3}")), *READS, says(finish())]
    script = Script(rules=[ScriptRule(when=SUMMARY, answer=notes)], answers=list(steps))
    config: Config = {
        "endpoint": {"context_window": "5k"},
        "tools": LIST_TOOLS,
        "history": {"messages": 1},
        "max_steps": 20,
    }
    async with scene(networks, script=script, file=DESK, context=context, **config) as s:
        await chatter(s.net, 8)
        turn = await s.turn("read it all")
        assert ending(turn)[0] == "finished", ending(turn)
        assert all(size_of(request) <= 3840 for request in s.model.requests)
        return turn, s.model, "\n".join(m.text for m in s.model.requests[-1].messages[2:])


@pytest.mark.behaviour("A-23")
async def test_earlier_steps_are_cut_by_importance_and_sent_messages_stay(
    in_memory: Networks,
) -> None:
    turn, model, shown = await long_turn(in_memory, ScriptedAnswer(text="unused"))
    assert layers(turn.steps[-1])["steps"][1] > 0
    assert SENT in shown
    assert [message.role for message in model.requests[-1].messages].count("tool") == 5
    assert model.mistakes == []


@pytest.mark.behaviour("A-23")
async def test_the_model_summarizes_earlier_steps(in_memory: Networks) -> None:
    turn, model, shown = await long_turn(in_memory, NOTES, compression="summary")
    asked = [request for request in model.requests if not request.tools]
    assert asked[0].prompt.startswith("<steps>\n<step n=")
    steps = [step for step in turn.steps if step.compresses]
    assert len(steps) == len(asked) == 1
    assert "were put into fewer words (1000+7 tokens)" in steps[0].notes[0]
    assert steps[0].tokens_in > 1000
    assert "I have read four times." in shown
    assert "send_text_message(" in shown


@pytest.mark.behaviour("A-23")
async def test_a_failed_summary_is_replaced_by_cuts_by_importance(in_memory: Networks) -> None:
    refusal = Refusal(status=500, message="out of memory")
    turn, _, shown = await long_turn(in_memory, refusal, compression="summary")
    notes = [note for step in turn.steps for note in step.notes]
    assert any("failed" in note and note.endswith("; cut by importance") for note in notes)
    assert SENT in shown
