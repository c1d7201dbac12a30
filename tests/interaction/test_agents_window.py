"""Agents whose models have a small context window, on a real hub."""

from __future__ import annotations

import pytest
from pydantic import JsonValue

from hubbub.agents.prompt.tokens import Estimate
from hubbub.cli.turns import _lines
from hubbub.errors import ConfigError
from hubbub.protocol.turns import Step, Turn
from hubbub.testing.model_request import ChatRequest
from hubbub.testing.model_server import (
    Answer,
    ModelServer,
    Refusal,
    Rule,
    Script,
    Usage,
    When,
)
from tests.interaction.agent_rig import Rig, call, finish, rig, says, send
from tests.interaction.peers import Networks, Peer, config

LONG = "many words that fill the window "
DESK = config(channels={"desk": {"members": "all"}})
LIST_TOOLS: JsonValue = ["send_text_message", "read_thread"]


def size_of(request: ChatRequest) -> int:
    """Tokens of all texts of a request, without what is around them."""
    return sum(Estimate().count(message.text) for message in request.messages)


async def chatter(person: Peer, times: int) -> None:
    """Long messages m1, m2, ... in a channel, which wake nobody."""
    for n in range(times):
        await person.call("post_to_channel", channel="desk", text=f"{n} {LONG * 40}")


async def woken(person: Peer, text: str) -> str:
    """The id of the turn that a message starts."""
    sent = await person.say("bot", text)
    return f"bot-{sent['id']}"


def layers(step: Step) -> dict[str, tuple[int, int]]:
    assert step.window is not None
    return {layer.name: (layer.tokens, layer.cut) for layer in step.window.layers}


@pytest.mark.behaviour("A-21")
@pytest.mark.parametrize("dialect", ["native", "tool_call", "final_output"])
async def test_older_messages_are_left_out_and_the_record_says_so(
    in_memory: Networks, dialect: str
) -> None:
    script = Script(answers=[says(send("ann", "yes"), finish())])
    async with ModelServer(script) as model, rig(in_memory, DESK) as net:
        ann, bob = await net.person(), await net.person("bob")
        endpoint: JsonValue = {"dialect": dialect, "context_window": "4k"}
        await net.llm("bot", model, endpoint=endpoint, tools=LIST_TOOLS)
        await chatter(bob, 10)
        turn = await net.turn(await woken(ann, "still there?"))
        assert turn.steps, turn.end
        step, request = turn.steps[0], model.requests[-1]
        assert turn.start.prompt == request.prompt
        assert turn.start.system_prompt == request.system
        assert "still there?" in request.prompt
        assert 'id="m1"' not in request.prompt
        assert 'id="m10"' in request.prompt
        assert step.window is not None
        assert (step.window.size, step.window.reserve, step.window.exact) == (4096, 1024, False)
        assert layers(step)["history"][1] > 1000
        assert size_of(request) <= 3072
        (line,) = [line for line in _lines(turn) if line.startswith("window ")]
        assert "of 4096 tokens, 1024 kept for the answer, estimated: system " in line
        assert "history " in line
        assert " cut)" in line


async def test_without_a_known_window_nothing_is_cut_and_the_record_says_so(
    in_memory: Networks,
) -> None:
    script = Script(answers=[says(send("ann", "hi"), finish())])
    async with ModelServer(script) as model, rig(in_memory) as net:
        ann = await net.person()
        await net.llm("bot", model)
        await ann.say("bot", "hello")
        turn = await net.turn("bot-m1")
        assert turn.steps[0].window is not None
        assert turn.steps[0].window.size is None
        assert any(
            line.startswith("window    not known, nothing is cut: ") for line in _lines(turn)
        )


@pytest.mark.behaviour("A-21")
async def test_a_window_without_room_for_what_must_stay_ends_the_turn_unasked(
    in_memory: Networks,
) -> None:
    async with ModelServer(Script()) as model, rig(in_memory) as net:
        ann = await net.person()
        await net.llm("bot", model, endpoint={"context_window": 600}, tools=LIST_TOOLS)
        await ann.say("bot", "hello")
        turn = await net.turn("bot-m1")
        assert turn.end is not None
        assert turn.end.outcome == "model_error"
        assert "raise models.default.context_window if the model has more, or" in turn.end.reason
        assert "the context window of 600 tokens is too small" in turn.end.reason
        assert model.requests == []
        assert turn.start.prompt is not None
        assert "hello" in turn.start.prompt


@pytest.mark.behaviour("A-22")
async def test_a_model_of_openai_is_counted_exactly(in_memory: Networks) -> None:
    script = Script(answers=[says(send("ann", "hi"), finish())])
    async with ModelServer(script) as model, rig(in_memory) as net:
        ann = await net.person()
        endpoint: JsonValue = {"model": "gpt-4o-mini", "context_window": "128k"}
        await net.llm("bot", model, endpoint=endpoint)
        await ann.say("bot", "hello")
        turn = await net.turn("bot-m1")
        assert turn.steps[0].window is not None
        assert turn.steps[0].window.exact
        assert any("4096 kept for the answer, counted: system" in line for line in _lines(turn))


async def test_a_reserve_larger_than_the_window_is_told_before_anything_runs(
    in_memory: Networks,
) -> None:
    async with ModelServer(Script()) as model, rig(in_memory) as net:
        context: JsonValue = {"window": "2k", "reserve": "2k"}
        with pytest.raises(ConfigError, match=r"agents\.bot\.context\.reserve"):
            await lived(net, model, context)


async def lived(net: Rig, model: ModelServer, context: JsonValue) -> None:
    """Runs an agent until it ends by itself; what it raised is raised."""
    await net.llm("bot", model, context=context)
    if (reason := await net.death("bot")) is not None:
        raise reason


# Long turns -------------------------------------------------------------------------------------

READS = [says(call("read_thread", thread="channel_desk", limit=n)) for n in range(1, 9)]
"""Eight steps whose results are long."""


SHORTER = When.model_validate({"system": "^You take notes"})


async def long_turn(
    networks: Networks, notes: Answer | Refusal, **context: JsonValue
) -> tuple[Turn, ModelServer]:
    """A turn that sends, then reads and ends, in a window with no room for all of it."""
    steps = [says(send("ann", f"wait {LONG * 3}")), *READS, says(finish())]
    script = Script(rules=[Rule(when=SHORTER, answer=notes)], answers=list(steps))
    async with ModelServer(script) as model, rig(networks, DESK) as net:
        ann, bob = await net.person(), await net.person("bob")
        await net.llm(
            "bot",
            model,
            endpoint={"context_window": "6k"},
            tools=LIST_TOOLS,
            context=context,
            history={"messages": 1},
            max_steps=20,
        )
        await chatter(bob, 8)
        return await net.turn(await woken(ann, "read it all")), model


@pytest.mark.behaviour("A-23")
async def test_earlier_steps_go_by_importance_and_what_was_sent_is_remembered(
    in_memory: Networks,
) -> None:
    turn, model = await long_turn(in_memory, Answer(text="nobody asks for this"))
    assert turn.end is not None
    assert turn.end.outcome == "finished", turn.end.reason
    last = model.requests[-1]
    assert layers(turn.steps[-1])["steps"][1] > 0
    told = "\n".join(message.text for message in last.messages[2:])
    assert "[my step 1, in fewer words] send_text_message(" in told
    results = [message for message in last.messages if message.role == "tool"]
    assert len(results) == 5
    assert all(size_of(request) <= 4608 for request in model.requests)
    assert model.mistakes == []


NOTES = Answer(
    text="I have read four times.",
    ignore_tool_choice=True,
    usage=Usage(prompt_tokens=1000, completion_tokens=7),
)


@pytest.mark.behaviour("A-23")
async def test_the_model_puts_earlier_steps_into_fewer_words(in_memory: Networks) -> None:
    turn, model = await long_turn(in_memory, NOTES, compression="summary")
    assert turn.end is not None
    assert turn.end.outcome == "finished", turn.end.reason
    asked = [request for request in model.requests if not request.tools]
    assert asked[0].prompt.startswith("<steps>\n<step n=")
    assert all(size_of(request) <= 4608 for request in model.requests)
    steps = [step for step in turn.steps if step.compresses]
    assert len(steps) == len(asked) == 1
    assert "were put into fewer words (1000+7 tokens)" in steps[0].notes[0]
    assert steps[0].tokens_in > 1000
    told = "\n".join(message.text for message in model.requests[-1].messages[2:])
    assert "I have read four times." in told
    assert "send_text_message(" in told


@pytest.mark.behaviour("A-23")
async def test_a_summary_that_fails_is_replaced_by_importance(in_memory: Networks) -> None:
    refusal = Refusal(status=500, message="out of memory")
    turn, model = await long_turn(in_memory, refusal, compression="summary")
    assert turn.end is not None
    assert turn.end.outcome == "finished", turn.end.reason
    notes = [note for step in turn.steps for note in step.notes]
    assert any("failed" in note and note.endswith("; cut by importance") for note in notes)
    told = "\n".join(message.text for message in model.requests[-1].messages[2:])
    assert "[my step 1, in fewer words] send_text_message(" in told
