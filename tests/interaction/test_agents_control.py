"""Time limits, hooks and streamed text of turns."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import JsonValue

from hubbub.config.loader import load
from hubbub.errors import ConfigError
from hubbub.mods.moderation.mod import Moderation
from hubbub.mods.moderation.rules import ModerationConfig
from hubbub.testing.model_script import AnyAnswer
from tests.doc_pages import example
from tests.interaction.agent_harness import call, ended, finish, harness, held, playing, says, send
from tests.interaction.approval_harness import parked
from tests.interaction.peers import Frame, Networks, Peer
from tests.interaction.scripted import one_turn, scene

PAGE = "docs/explanation/turns.md"


SLOW = '''
import asyncio

async def sleep() -> str:
    """Sleep."""
    await asyncio.Event().wait()
    return "awake"

async def give_up() -> str:
    """Give up."""
    raise TimeoutError("nobody there")
'''

BAD_HOOKS = """
from hubbub.agents.turn.hooks import Hooks

class Broken(Hooks):
    async def on_turn_start(self, turn):
        raise RuntimeError("no disk")

    def on_tool_end(self, turn, call, result):
        raise TimeoutError("no paper")

    def on_turn_end(self, turn, end):
        raise RuntimeError("no ink")

class Guard(Hooks):
    def on_tool_start(self, turn, call):
        if call.name == "list_channels":
            raise RuntimeError("no key")
        return super().on_tool_start(turn, call)

class NoHooks:
    pass
"""


@pytest.mark.behaviour("Y-10")
async def test_a_turn_continues_after_a_tool_that_exceeds_its_timeout(
    in_memory: Networks, tmp_path: Path
) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    # Nothing is sent, as that can take longer than the timeout of all tools.
    turn, model = await one_turn(
        in_memory,
        *[says(call("sleep")), says(call("give_up")), says(finish()), says(finish())],
        tools=["slow.py:sleep", "slow.py:give_up", "send_text_message"],
        tool_timeout="0.05s",
        base=tmp_path,
    )
    assert ended(turn).outcome == "finished"
    errors = [step.calls[0].error for step in turn.steps[:2]]
    assert errors == ["timeout", "tool_failed"], "a tool's own TimeoutError is no timeout"
    assert "may still take effect" in model.requests[1].body.messages[-1].text


class TestHooks:
    @pytest.mark.behaviour("Y-7")
    async def test_the_hook_of_the_docs_page_refuses_a_broadcast(
        self, in_memory: Networks, tmp_path: Path
    ) -> None:
        for name in ("house_rules.py", "desk.yaml"):
            (tmp_path / name).write_text(example(PAGE, name))
        desk = load(tmp_path / "desk.yaml", environ={}).file.agents["desk"]
        shout = call("broadcast_text_message", text="everybody listen")
        turn, model = await one_turn(
            in_memory,
            says(shout),
            says(send("ann", "you alone"), finish()),
            base=tmp_path,
            hooks=[*desk.hooks],
        )
        assert turn.steps[0].calls[0].error == "refused"
        assert "only to the participants concerned" in model.requests[1].body.messages[-1].text
        assert len(turn.sent) == 1

    @pytest.mark.behaviour("Y-8")
    async def test_a_failing_hook_is_recorded_and_a_call_that_it_cannot_check_does_not_run(
        self, in_memory: Networks, tmp_path: Path
    ) -> None:
        (tmp_path / "bad.py").write_text(BAD_HOOKS)
        turn, model = await one_turn(
            in_memory,
            *[says(call("list_channels")), says(call("list_participants"))],
            says(send("ann", "not now"), finish()),
            base=tmp_path,
            hooks=["bad.py:Broken", "bad.py:Guard"],
        )
        assert ended(turn).outcome == "finished"
        assert turn.steps[0].calls[0].error == "hook_failed"
        assert turn.steps[0].notes[:2] == (
            "the hook Broken.on_turn_start raised RuntimeError: no disk",
            "the hook Guard.on_tool_start raised RuntimeError: no key",
        )
        assert "has had no effect" in model.requests[1].body.messages[-1].text
        note = "the hook Broken.on_tool_end raised TimeoutError: no paper"
        assert (turn.steps[1].calls[0].error, turn.steps[1].notes) == (None, (note,))
        assert ended(turn).notes == ("the hook Broken.on_turn_end raised RuntimeError: no ink",)
        assert len(turn.sent) == 1

    async def test_a_class_that_is_no_hook_is_a_config_error(
        self, in_memory: Networks, tmp_path: Path
    ) -> None:
        (tmp_path / "bad.py").write_text(BAD_HOOKS)
        async with scene(in_memory, base=tmp_path, hooks=["bad.py:NoHooks"]) as s:
            error = await s.net.death("bot")
        assert isinstance(error, ConfigError)
        assert "bad.py:NoHooks is no subclass of" in str(error)
        assert not s.model.requests


def partials(ann: Peer) -> list[Frame]:
    return [signal for signal in ann.signals if signal["type"] == "partial"]


LONG = "a message that is written in pieces, one after the other"


def hidden(folder: Path) -> dict[str, tuple[list[AnyAnswer], JsonValue, dict[str, JsonValue]]]:
    """Text that is not shown while it is written: the answers, the endpoint, the config."""
    (folder / "house_rules.py").write_text(example(PAGE, "house_rules.py"))
    thought = "<scratchpad>she must not know</scratchpad>hello ann"
    thinks = says(send("ann", thought), finish(), text="<think>hm</think> well")
    plain: list[AnyAnswer] = [says(send("ann", LONG)), says(finish())]
    untrusted: JsonValue = {"send_text_message": {"confirm": "untrusted"}}
    rules: JsonValue = [f"{folder / 'house_rules.py'}:HouseRules"]
    return {
        "whole": (plain, {"stream": False}, {}),
        "text": (plain, {"dialect": "tool_call"}, {}),
        "marked": (plain, {"dialect": "final_output"}, {}),
        "thinks": ([thinks], {}, {"prompt": {"scratchpad": True}}),
        "confirmed": (plain, {}, {"tool_settings": untrusted}),
        "ruled": (plain, {}, {"hooks": rules}),
    }


class TestStreaming:
    @pytest.mark.behaviour("Y-9")
    async def test_a_person_sees_a_message_while_the_model_writes_it(
        self, networks: Networks
    ) -> None:
        script = [says(send("ann", LONG), hold="half", hold_after=8), says(finish())]
        async with playing(*script) as model, harness(networks) as net:
            ann = await net.person()
            await net.llm("bot", model, endpoint={"stream": True})
            await ann.say("bot", "go")
            await held(model, "half")
            await ann.until(lambda: bool(partials(ann)))
            first = partials(ann)[0]
            assert (first["sender"], first["thread_id"]) == ("bot", "dm.ann.bot")
            assert (first["data"]["turn"], first["data"]["step"]) == ("bot-m1", 1)
            assert first["data"]["to"] == "ann"
            text = first["data"]["text"]
            assert text
            assert LONG.startswith(text)
            assert len(text) < len(LONG)
            model.release("half")
            assert (await ann.event())["message"]["content"] == LONG
            await net.turn("bot-m1")
            assert partials(ann)[-1]["data"]["text"] == LONG

    @pytest.mark.behaviour("Y-9")
    async def test_text_that_awaits_approval_is_not_shown(self, in_memory: Networks) -> None:
        confirmed: JsonValue = {"send_text_message": {"confirm": True}}
        script = [says(send("ann", LONG)), says(finish()), says(finish())]
        async with scene(
            in_memory, *script, endpoint={"stream": True}, tool_settings=confirmed
        ) as s:
            await s.say()
            (approval,) = await parked(s.net, s.ann)
            await s.ann.call("deny", id=approval["id"])
            await s.net.turn("bot-m1")
            await s.ann.sync()
            assert partials(s.ann) == []

    @pytest.mark.behaviour("Y-9")
    async def test_text_that_a_mod_can_reject_is_not_shown(self, in_memory: Networks) -> None:
        script = [says(send("ann", LONG)), says(finish())]
        mods = [Moderation(ModerationConfig(words=("pieces",)))]
        async with playing(*script) as model, harness(in_memory, mods=mods) as net:
            ann = await net.person()
            await net.llm("bot", model, endpoint={"stream": True})
            await ann.say("bot", "go")
            turn = await net.turn("bot-m1")
            await ann.sync()
        assert turn.steps[0].calls[0].error == "rejected"
        assert partials(ann) == []

    @pytest.mark.behaviour("Y-9", "H-90")
    async def test_thoughts_raw_dialect_text_and_messages_that_can_be_refused_are_not_shown(
        self, in_memory: Networks, tmp_path: Path
    ) -> None:
        async with harness(in_memory) as net:
            ann = await net.person()
            for name, (answers, endpoint, settings) in hidden(tmp_path).items():
                streams: dict[str, JsonValue] = {"stream": True}
                assert isinstance(endpoint, dict)
                async with playing(*answers) as model:
                    await net.llm(name, model, endpoint=streams | endpoint, **settings)
                    turn = await net.turn(await net.ask(ann, "go", name))
                    await ann.sync()
                    assert (len(turn.sent), partials(ann)) == (1, []), name
                    await net.kill(name)
