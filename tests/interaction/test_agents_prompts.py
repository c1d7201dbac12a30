"""System prompts of agents on a real hub: their parts, their versions, their scratchpads."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import JsonValue

from hubbub.config.models import AgentConfig, ModelConfig
from hubbub.errors import ConfigError
from hubbub.protocol.turns import Turn
from hubbub.testing.model_script import AnyAnswer
from hubbub.testing.model_server import Call, ModelServer, Script
from tests.interaction.agent_rig import Rig, call, finish, rig, says, send
from tests.interaction.peers import Networks

SECRET = "she must not see this"


def playing(*answers: AnyAnswer) -> ModelServer:
    return ModelServer(Script(answers=list(answers)))


def prompted(prompt: object, **config: JsonValue) -> AgentConfig:
    return AgentConfig.model_validate({"prompt": prompt, **config})


def models(server: ModelServer, **settings: JsonValue) -> dict[str, ModelConfig]:
    model = {"model": "m", "base_url": server.base_url, "retries": 0, **settings}
    return {"default": ModelConfig.model_validate(model)}


def system_of(model: ModelServer, request: int = 0) -> str:
    return model.requests[request].body.messages[0].text


@pytest.mark.behaviour("Q-3")
async def test_the_parts_of_a_prompt_are_sent_and_recorded(in_memory: Networks) -> None:
    settings = {
        "components": {
            "remove": ["thread_ids"],
            "add": {"style": {"text": "Be brief.", "priority": 97}},
            "replace": {"network": {"text": "You are in town."}},
        },
        "reminder": ["Never guess."],
    }
    async with playing(says(finish())) as model, rig(in_memory) as net:
        ann = await net.person()
        config = prompted(settings, instruction="Lead.", card={"skills": ["leading"]})
        await net.configured("bot", config, Path(), models(model))
        await ann.say("bot", "hi")
        turn = await net.turn("bot-m1")
        text = system_of(model)
        assert text.startswith("Lead.\n\nBe brief.\n\nYou are in town.\n\nEverything inside")
        assert text.endswith("Above all:\n- Never guess.")
        assert "Tools that only read: " in text
        assert "that you can do this: leading." in text
        assert turn.start.system_prompt == text
        assert turn.start.prompt_id is None
        assert turn.start.components[:3] == ("identity", "style", "network")
        assert turn.start.components[-1] == "reminder"


@pytest.mark.behaviour("Q-1")
async def test_a_plain_instruction_records_its_parts_too(in_memory: Networks) -> None:
    async with playing(says(finish())) as model, rig(in_memory) as net:
        ann = await net.person()
        await net.llm("bot", model, instruction="Lead.")
        await ann.say("bot", "hi")
        turn = await net.turn("bot-m1")
        told = ("identity", "network", "untrusted_data", "thread_ids", "speaking")
        assert turn.start.components == told


async def test_the_others_in_the_network_are_named(in_memory: Networks) -> None:
    async with playing(says(finish())) as model, rig(in_memory) as net:
        ann = await net.person()
        await net.llm("writer", model, instruction="Write.")
        await net.configured("bot", prompted({}), Path(), models(model))
        await ann.say("bot", "hi")
        await net.turn("bot-m1")
        assert '<participant id="writer" kind="agent"></participant>' in system_of(model)


@pytest.mark.behaviour("Q-7")
@pytest.mark.parametrize("dialect", ["tool_call", "final_output"])
async def test_the_reminder_stands_behind_what_a_dialect_says(
    in_memory: Networks, dialect: str
) -> None:
    example = {"incoming": "hi", "steps": [{"call": "finish", "arguments": {"reason": "no"}}]}
    async with playing(says(finish())) as model, rig(in_memory) as net:
        ann = await net.person()
        config = prompted({"reminder": ["Never guess."], "examples": [example]}, turn_timeout=5)
        await net.configured("bot", config, Path(), models(model, dialect=dialect))
        await ann.say("bot", "hi")
        turn = await net.turn("bot-m1")
        text = system_of(model)
        assert text.endswith("Above all:\n- Never guess.")
        assert turn.start.system_prompt == text
        shown = text.partition("<examples>")[2].partition("</examples>")[0]
        assert ("TOOL_CALL {" if dialect == "tool_call" else '"action": "Finish"') in shown


class TestVersions:
    def versions(self, folder: Path) -> None:
        (folder / "prompts" / "triage").mkdir(parents=True)
        for version in ("1.9", "1.10"):
            path = folder / "prompts" / "triage" / f"{version}.j2"
            path.write_text(f"{version} of {{{{ shop }}}}", encoding="utf-8")

    async def prompt_id(self, net: Rig, model: ModelServer, folder: Path, **more: JsonValue) -> str:
        """The prompt of one turn of an agent with these settings."""
        settings: dict[str, JsonValue] = {"name": "triage", "variables": {"shop": "A"}, **more}
        name = f"bot{len(net.clients)}"
        person = await net.person(f"ann{len(net.clients)}")
        await net.configured(name, prompted(settings), folder, models(model))
        sent = await person.say(name, "hi")
        turn = await net.turn(f"{name}-{sent['id']}")
        return turn.start.prompt_id or ""

    @pytest.mark.behaviour("Q-4", "Q-5")
    async def test_a_version_is_recorded_pinned_and_rolled_out(
        self, in_memory: Networks, tmp_path: Path
    ) -> None:
        self.versions(tmp_path)
        half: JsonValue = {"version": "1.10", "share": 1.0}
        none: JsonValue = {"version": "1.10", "share": 0.0}
        answers = [says(finish()), says(finish())] * 4
        async with playing(*answers) as model, rig(in_memory) as net:
            latest = await self.prompt_id(net, model, tmp_path)
            pinned = await self.prompt_id(net, model, tmp_path, version="1.9")
            out = await self.prompt_id(net, model, tmp_path, version="1.9", rollout=half)
            back = await self.prompt_id(net, model, tmp_path, version="1.9", rollout=none)
        assert (latest[:12], pinned[:11]) == ("triage@1.10#", "triage@1.9#")
        assert (out, back) == (latest, pinned)

    async def test_a_missing_variable_keeps_the_agent_from_starting(
        self, in_memory: Networks, tmp_path: Path
    ) -> None:
        self.versions(tmp_path)
        async with playing() as model, rig(in_memory) as net:
            await net.configured("bot", prompted({"name": "triage"}), tmp_path, models(model))
            error = await net.death("bot")
            assert isinstance(error, ConfigError)
            assert "triage@1.10 needs the variable 'shop'" in str(error)

    async def test_a_template_that_fails_ends_the_turn_and_not_the_agent(
        self, in_memory: Networks, tmp_path: Path
    ) -> None:
        path = tmp_path / "prompts" / "a" / "1.j2"
        path.parent.mkdir(parents=True)
        path.write_text("{{ 1 / (0 if thread == 'direct_ann' else 1) }}", encoding="utf-8")
        async with playing(says(finish()), says(finish())) as model, rig(in_memory) as net:
            ann, bob = await net.person(), await net.person("bob")
            await net.configured("bot", prompted({"name": "a"}), tmp_path, models(model))
            await ann.say("bot", "hi")
            failed = await net.turn("bot-m1")
            assert failed.end is not None
            assert failed.end.outcome == "handler_error"
            assert "1.j2:1: the prompt fails: division by zero" in failed.end.reason
            sent = await bob.say("bot", "hi")
            fine = await net.turn(f"bot-{sent['id']}")
            assert fine.end is not None
            assert fine.end.outcome == "finished"


@pytest.mark.behaviour("Q-6")
class TestScratchpad:
    async def turn(
        self, networks: Networks, *answers: AnyAnswer, **endpoint: JsonValue
    ) -> tuple[Turn, list[str]]:
        """One turn of a model with a scratchpad, and all that the person hears of it."""
        async with playing(*answers) as model, rig(networks) as net:
            ann = await net.person()
            config = prompted({"scratchpad": True})
            await net.configured("bot", config, Path(), models(model, **endpoint))
            await ann.say("bot", "hi")
            turn = await net.turn("bot-m1")
            await net.network.quiet()
            heard = [str(frame) for frame in await ann.sync()]
            assert "<scratchpad>" in system_of(model)
            assert all(SECRET not in text for text in [*heard, str(ann.signals)]), heard
            return turn, heard

    @pytest.mark.parametrize("stream", [False, True])
    async def test_thoughts_beside_a_call_are_recorded_and_sent_to_nobody(
        self, in_memory: Networks, stream: bool
    ) -> None:
        thinking = says(send("direct_ann", "hello"), text=f"<scratchpad>{SECRET}</scratchpad>So:")
        turn, heard = await self.turn(in_memory, thinking, says(finish()), stream=stream)
        assert (turn.steps[0].text, turn.steps[0].reasoning) == ("So:", SECRET)
        assert any("hello" in text for text in heard)

    async def test_thoughts_in_an_argument_are_taken_out_before_it_is_sent(
        self, in_memory: Networks
    ) -> None:
        text = f"<scratchpad>{SECRET}</scratchpad>hello"
        escaped = text.replace("<", "\\u003c")
        raw = Call(
            tool="send_text_message", arguments=f'{{"to": "direct_ann", "text": "{escaped}"}}'
        )
        content: JsonValue = {"a": [f"x &lt;scratchpad&gt;{SECRET}", SECRET]}
        turn, heard = await self.turn(
            in_memory,
            says(send("direct_ann", text), raw),
            says(call("send_message", to="direct_ann", content=content)),
            says(finish(f"done <scratchpad>{SECRET}")),
        )
        assert [c.arguments for c in turn.steps[0].calls] == [
            {"to": "direct_ann", "text": "hello"}
        ] * 2
        assert turn.steps[0].reasoning == f"{SECRET}\n{SECRET}"
        assert turn.end is not None
        assert turn.end.reason == "done"
        assert sum("hello" in text for text in heard) == 2

    async def test_a_call_that_was_only_thought_of_is_not_made(self, in_memory: Networks) -> None:
        line = 'TOOL_CALL {"tool_name": "%s", "parameters": {%s}}'
        said = line % ("send_text_message", f'"to": "direct_ann", "text": "{SECRET}"')
        done = line % ("finish", '"reason": "no"')
        answer = says(text=f"<scratchpad>\n{said}\n</scratchpad>\n{done}", ignore_tool_choice=True)
        again = says(text=done, ignore_tool_choice=True)
        turn, _ = await self.turn(in_memory, answer, again, dialect="tool_call")
        assert [c.name for step in turn.steps for c in step.calls] == ["finish", "finish"]
        assert SECRET in (turn.steps[0].reasoning or "")

    async def test_without_the_option_a_scratchpad_is_text_like_any_other(
        self, in_memory: Networks
    ) -> None:
        text = "write <scratchpad>…</scratchpad> around it"
        script = [says(send("direct_ann", text)), says(finish())]
        async with playing(*script) as model, rig(in_memory) as net:
            ann = await net.person()
            await net.llm("bot", model)
            await ann.say("bot", "hi")
            await net.turn("bot-m1")
            assert any(text in str(frame) for frame in await ann.sync())
