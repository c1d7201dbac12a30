"""Agents with a model, on a real hub, with the real OpenAI client and a scripted endpoint."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

import pytest
from pydantic import JsonValue

from hubbub.errors import ConfigError
from hubbub.network.store.sqlite import SqliteStore
from hubbub.protocol.turns import Turn
from hubbub.testing.model_script import AnyAnswer
from hubbub.testing.model_server import (
    Breakdown,
    ModelServer,
    Refusal,
    Script,
    ScriptedCall,
    ScriptRule,
)
from tests.interaction.agent_harness import call, finish, says, send
from tests.interaction.peers import Networks, config
from tests.interaction.scripted import TALK, Config, ending, scene

DESK = config(channels={"desk": {"members": "all"}})
RIGHT = says(send("ann", "there"), finish())


@pytest.mark.behaviour("T-1")
async def test_a_wake_starts_a_recorded_turn_that_sends_a_reply(on_sockets: Networks) -> None:
    answers = [says(send("direct_ann", "hello ann"), text="I greet her"), says(finish("greeted"))]
    async with scene(on_sockets, *answers, instruction="Greet people.") as s:
        turn = await s.turn("hi <bot>")
        answer = (await s.ann.event())["message"]
        assert (answer["content"], answer["thread_id"]) == ("hello ann", "dm.ann.bot")
        assert (answer["cause_id"], answer["hop"]) == ("bot-m1", 1)
        first = s.model.requests[0]
        assert first.incoming == "hi <bot>"
        assert first.body.messages[0].text.startswith("Greet people.\n\nYou are `bot`")
        assert first.body.tool_choice == "required"
    assert ending(turn) == ("finished", "greeted")
    assert turn.sent == ("m2",)
    assert turn.start.model == "m"
    assert (turn.system_prompt, turn.prompt) == (first.system, first.prompt)
    assert {"send_text_message", "reply", "post_to_channel", "finish"} <= set(turn.start.tools)
    assert not {"begin_turn", "record_step", "end_turn", "list_turns"} & set(first.tools)
    one, two = turn.steps
    assert (one.n, one.text, two.n) == (1, "I greet her", 2)
    assert one.calls[0].arguments == {"to": "direct_ann", "text": "hello ann"}
    assert json.loads(one.calls[0].result or "")["thread_id"] == "direct_ann"
    assert turn.tokens_in > 0
    assert turn.tokens_out > 0
    assert all(step.duration_ms is not None for step in turn.steps)


@pytest.mark.behaviour("T-1", "T-5")
async def test_the_hub_is_sent_only_new_parts_of_a_prompt(on_sockets: Networks) -> None:
    script = Script(rules=[ScriptRule(answer=says(send("ann", "yes"), finish()))])
    async with scene(on_sockets, script=script, instruction="Be brief. " * 100) as s:
        store = s.net.network.hub.kernel.store
        assert isinstance(store, SqliteStore)
        for n in range(8):
            other = await s.net.network.join(f"other{n}", "agent")
            await s.net.turn(await s.net.ask(other, f"thread {n} " * 50))
        before = await store.reading.run(_stored)
        turns = [await s.turn("first"), await s.turn("second")]
        sizes = [await store.reading.run(_stored) - before]
        await s.restart()
        turns.append(await s.turn("third"))
        sizes.append(await store.reading.run(_stored) - before)
        requests = s.model.requests[-3:]
    assert [(t.system_prompt, t.prompt) for t in turns] == [(r.system, r.prompt) for r in requests]
    prompts = [len(turn.prompt or "") for turn in turns]
    assert "thread 7" in (turns[2].prompt or "")
    assert sizes[0] < sum(prompts[:2]) / 3
    # A new process sends the whole prompt, with the participants who have joined since.
    assert sizes[1] - sizes[0] < len(turns[2].system_prompt or "") + prompts[2] / 3


def _stored(db: sqlite3.Connection) -> int:
    """The number of characters in all parts of prompts."""
    size: int = db.execute("SELECT sum(length(text)) FROM prompt_part").fetchone()[0]
    return size


async def turn_of(
    networks: Networks, *answers: AnyAnswer, messages: int = 1, **config: Any
) -> tuple[Turn, ModelServer, list[str]]:
    """The turn that one message starts, its model, and all its messages to the person."""
    async with scene(networks, *answers, **config) as s:
        turn = await s.turn()
        received = [await s.heard() for _ in range(messages)]
        await s.silence()
        return turn, s.model, received


class TestToolOrFinish:
    @pytest.mark.behaviour("A-4")
    async def test_a_text_is_corrected_and_never_published(self, in_memory: Networks) -> None:
        only: JsonValue = {"dialect": "native"}  # without a fallback
        turn, model, heard = await turn_of(in_memory, TALK, TALK, endpoint=only)
        assert turn.end is not None
        assert (turn.end.outcome, turn.end.text) == ("no_action", "Hello there!")
        assert "Call a tool" in model.requests[1].body.messages[-1].text
        assert "no usable answer" in heard[0]

    @pytest.mark.behaviour("A-9")
    async def test_messages_of_one_step_keep_their_order_and_go_before_its_finish(
        self, in_memory: Networks
    ) -> None:
        many = [send("ann", str(n)) for n in range(5)]
        turn, model, heard = await turn_of(in_memory, says(finish(), *many), messages=5)
        assert heard == ["0", "1", "2", "3", "4"]
        assert (ending(turn)[0], len(model.requests)) == ("finished", 1)

    @pytest.mark.behaviour("A-5")
    async def test_the_model_sees_the_error_of_a_wrong_call_and_continues(
        self, in_memory: Networks
    ) -> None:
        cut = ScriptedCall(tool="send_text_message", arguments='{"to": "a')
        garbage = ScriptedCall(tool="send_text_message", arguments="{oops")
        wrong = [
            (call("send_mesage", to="ann"), "unknown_tool", "send_message"),
            (garbage, "invalid_arguments", "JSON object"),
            (call("send_text_message", to="ann"), "invalid_arguments", "text"),
            (call("send_text_message", to="annn", text="x"), "unknown_participant", "ann"),
            (call("read_thread", thread="channel_desc"), "", "channel"),
        ]
        answers = [says(*(each for each, _, _ in wrong)), says(cut, finish_reason="length"), RIGHT]
        turn, model, heard = await turn_of(in_memory, *answers)
        results = [m.text for m in model.requests[1].body.messages if m.role == "tool"]
        for (each, error, hint), result, record in zip(
            wrong, results, turn.steps[0].calls, strict=True
        ):
            assert error in result, each
            assert hint in result, each
            assert record.error, each
        assert "cut off" in model.requests[2].body.messages[-1].text
        assert heard == ["there"]

    @pytest.mark.behaviour("A-7", "W-9")
    @pytest.mark.parametrize(
        ("failure", "reason"),
        [(Refusal(status=500), "scripted refusal"), (Breakdown(breakdown="reset"), "be reached")],
    )
    async def test_a_failing_model_ends_the_turn_with_a_notice_and_one_line_in_the_agents_log(
        self,
        in_memory: Networks,
        failure: AnyAnswer,
        reason: str,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        turn, _, (notice,) = await turn_of(in_memory, failure)
        assert ending(turn)[0] == "model_error"
        assert "http://127.0.0.1:" in ending(turn)[1]
        assert "got no answer from its model" in notice
        assert reason in notice
        (line,) = capsys.readouterr().err.splitlines()
        assert "no answer from the model" in line
        assert reason in line

    async def test_a_hanging_model_ends_the_turn_with_a_timeout(self, in_memory: Networks) -> None:
        turn, _, _ = await turn_of(in_memory, Breakdown(breakdown="hang"), turn_timeout=0.05)
        assert ending(turn)[0] == "timeout"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tools": ["send_text_mesage"]}, "did you mean 'send_text_message'?"),
        ({"tools": ["gone.py:f"]}, "does not exist"),
        ({"model": "defualt"}, "did you mean 'default'?"),
        ({"template": "gone.j2"}, "cannot be read"),
        ({"begin_with": "reply_"}, "agents.bot.begin_with: "),
        ({"context": {"window": "2k", "reserve": "2k"}}, "agents.bot.context.reserve"),
        ({"disabled_tools": ["repply"]}, "'repply'; did you mean 'reply'?"),
        ({"tool_settings": {"repply": {}}}, "tool_settings: there is no tool 'repply'; "),
        ({"mcp": ["shop"]}, "mcp: there is no MCP server 'shop'; add it"),
        ({"prompt": {"name": "buyer"}}, "buyer"),
    ],
)
async def test_a_config_with_an_unknown_name_or_file_is_an_error_at_the_start(
    in_memory: Networks, settings: Config, message: str
) -> None:
    async with scene(in_memory, **settings) as s:
        error = await s.net.death("bot")
        assert isinstance(error, ConfigError)
        assert message in str(error)


@pytest.mark.behaviour("H-67")
class TestDebounce:
    """Agents that wait a moment for more messages before a turn."""

    async def test_a_turn_starts_with_all_messages_that_arrived_during_the_wait(
        self, in_memory: Networks
    ) -> None:
        async with scene(in_memory, RIGHT, debounce="60s") as s:
            zed = await s.net.network.join("zed", "agent")
            await zed.say(["ann", "bot"], "one thing")
            await s.arrived((await zed.say(["ann", "bot"], "another"))["seq"])
            assert not s.model.requests, "messages of agents can wait"
            await s.ann.say(["zed", "bot"], "now")
            assert (await s.net.turn("bot-m1")).start.messages == ("m1", "m2", "m3")

    async def test_a_direct_message_of_a_person_is_not_delayed(self, in_memory: Networks) -> None:
        async with scene(in_memory, RIGHT, debounce="60s") as s:
            assert ending(await s.turn())[0] == "finished"

    async def test_the_wait_ends_after_its_time(self, in_memory: Networks) -> None:
        async with scene(in_memory, says(finish()), file=DESK, debounce="20ms") as s:
            await s.ann.call("post_to_channel", channel="desk", text="@bot, when you have time")
            assert (await s.net.turn("bot-m1")).start.messages == ("m1",)

    async def test_a_message_that_arrived_during_a_turn_is_not_delayed_again(
        self, in_memory: Networks
    ) -> None:
        answers = [says(send("ann", "yes"), finish(), hold="at work"), says(finish())]
        async with scene(in_memory, *answers, debounce="60s") as s:
            zed = await s.net.network.join("zed", "agent")
            await s.ann.say(["zed", "bot"], "go")
            await s.held("at work")
            await s.arrived((await zed.say(["ann", "bot"], "me too"))["seq"])
            s.model.release("at work")
            assert (await s.net.turn("bot-m1")).start.messages == ("m1",)
            assert (await s.net.turn("bot-m2")).start.messages == ("m2",)
