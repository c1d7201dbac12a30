"""System prompts of agents on a real hub: components, versions and scratchpads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from hubbub.agents.prompt.system import position
from hubbub.errors import ConfigError
from hubbub.protocol import thread_ids
from hubbub.protocol.turns import Turn
from hubbub.testing.model_script import AnyAnswer
from hubbub.testing.model_server import ScriptedCall
from tests.interaction.agent_harness import call, finish, says, send
from tests.interaction.peers import Networks
from tests.interaction.scripted import Config, ending, scene

SECRET = "she must not see this"
DONE = says(send("ann", "ok"), finish())


@pytest.mark.behaviour("Q-1", "Q-3")
async def test_the_components_of_a_prompt_are_sent_and_recorded(in_memory: Networks) -> None:
    prompt: JsonValue = {
        "components": {
            "remove": ["thread_ids"],
            "add": {"style": {"text": "Be brief.", "priority": 97}},
            "replace": {"network": {"text": "You are in town."}},
        },
        "reminder": ["Never guess."],
    }
    async with scene(in_memory, DONE, DONE, instruction="Lead.") as s:
        plain = await s.turn()
        assert plain.start.components == (
            *("identity", "network", "untrusted_data", "thread_ids", "speaking"),
        )
        await s.net.llm("writer", s.model, instruction="Write.")
        await s.restart(prompt=prompt, card={"skills": ["leading"]})
        turn = await s.turn()
        text = s.model.requests[-1].system
        assert text.startswith("Lead.\n\nBe brief.\n\nYou are in town.\n\nEverything inside")
        assert text.endswith("Above all:\n- Never guess.")
        assert "Tools that act, with an effect that others see: `delegate`" in text
        assert "that you can do this: leading." in text
        assert '<participant id="writer" kind="agent"></participant>' in text
        assert (turn.system_prompt, turn.start.prompt_id) == (text, None)
        assert turn.start.components[:3] == ("identity", "style", "network")
        assert turn.start.components[-1] == "reminder"


@pytest.mark.behaviour("Q-7")
async def test_the_reminder_follows_the_instructions_of_a_dialect(in_memory: Networks) -> None:
    example: JsonValue = {
        "incoming": "hi",
        "steps": [{"call": "finish", "arguments": {"reason": "no"}}],
    }
    prompt: JsonValue = {"reminder": ["Never guess."], "examples": [example]}
    for dialect, written in (("tool_call", "TOOL_CALL {"), ("final_output", '"action": "Finish"')):
        async with scene(in_memory, DONE, prompt=prompt, endpoint={"dialect": dialect}) as s:
            turn = await s.turn()
            text = s.model.requests[0].system
            assert turn.system_prompt == text
            assert text.endswith("Above all:\n- Never guess."), dialect
            assert written in text.partition("<examples>")[2].partition("</examples>")[0]


async def test_a_replaced_dialect_contract_explains_the_tools_of_each_request(
    in_memory: Networks, tmp_path: Path
) -> None:
    (tmp_path / "calls.j2").write_text(
        'Write TOOL_CALL {"tool_name": "NAME", "parameters": {}} on a line.\n'
        "{% for tool in tools %}{{ tool.name }} takes {{ tool.offered_text }}\n{% endfor %}"
    )
    contract: JsonValue = {"file": str(tmp_path / "calls.j2")}
    prompt: JsonValue = {
        "components": {
            "replace": {"dialect.tool_call": contract},
            "add": {"stock": {"text": "One. Two. " * 50}},
        },
        "max_tokens": {"stock": 20},
        "reminder": ["Never guess."],
    }
    config: Config = {"prompt": prompt, "select_over": 1}
    picked = says(call("use_tools", names=["read_thread"]))
    async with scene(in_memory, picked, DONE, endpoint={"dialect": "tool_call"}, **config) as s:
        turn = await s.turn()
        first, second = (request.system for request in s.model.requests)
    assert turn.system_prompt == first
    assert first.endswith("Above all:\n- Never guess.")
    assert "TOOL_CALL {" in first
    assert "# How to call tools" not in first
    assert "read_thread takes" not in first
    assert "read_thread takes" in second, "it lists the tools of each request"
    assert "One. Two." in first
    assert "(cut: the first" in first
    parts = [part for part in turn.start.components if part[:5] in ("stock", "diale")]
    assert parts == ["stock (cut, of 193 tokens)", "dialect.tool_call"]


class TestVersions:
    @pytest.mark.behaviour("Q-4", "Q-5")
    async def test_a_version_is_recorded_pinned_and_rolled_out(
        self, in_memory: Networks, tmp_path: Path
    ) -> None:
        (folder := tmp_path / "prompts" / "triage").mkdir(parents=True)
        for version in ("1.9", "1.10"):
            (folder / f"{version}.j2").write_text(f"{version} of {{{{ shop }}}}")
        cases: list[Config] = [
            {},
            {"version": "1.9"},
            {"version": "1.9", "rollout": {"version": "1.10", "share": 1.0}},
            {"version": "1.9", "rollout": {"version": "1.10", "share": 0.0}},
        ]
        ids: list[str] = []
        prompt: Config = {"name": "triage", "variables": {"shop": "A"}}
        async with scene(in_memory, *[DONE] * 4, base=tmp_path, prompt=prompt) as s:
            for case in cases:
                await s.restart(prompt={**prompt, **case})
                ids.append((await s.turn()).start.prompt_id or "")
            await s.restart(prompt={"name": "triage"})
            error = await s.net.death("bot")
            assert isinstance(error, ConfigError)
            assert "triage@1.10 needs the variable 'shop'" in str(error)
        latest, pinned, out, back = ids
        assert (latest[:12], pinned[:11]) == ("triage@1.10#", "triage@1.9#")
        assert (out, back) == (latest, pinned)

    async def test_a_rollout_is_used_in_its_share_of_the_threads(self, in_memory: Networks) -> None:
        names = ("ann", "bob")
        positions = {n: position("bot", thread_ids.direct([n, "bot"]), "") for n in names}
        first, last = sorted(names, key=positions.__getitem__)
        rollout: JsonValue = {"share": positions[last], "instruction": "Be kind."}
        answers = [says(send(name, "ok"), finish()) for name in names]
        async with scene(in_memory, *answers, instruction="Be blunt.", rollout=rollout) as s:
            await s.turn()
            await s.net.turn(await s.net.ask(await s.net.person("bob"), "hi"))
            prompts = [request.system.partition("\n")[0] for request in s.model.requests]
        used = dict(zip(names, prompts, strict=True))
        assert (used[first], used[last]) == ("Be kind.", "Be blunt.")

    async def test_a_template_that_fails_ends_the_turn_and_not_the_agent(
        self, in_memory: Networks, tmp_path: Path
    ) -> None:
        path = tmp_path / "prompts" / "a" / "1.j2"
        path.parent.mkdir(parents=True)
        path.write_text("{{ 1 / (0 if thread == 'direct_ann' else 1) }}")
        async with scene(in_memory, DONE, DONE, base=tmp_path, prompt={"name": "a"}) as s:
            bob = await s.net.person("bob")
            outcome, reason = ending(await s.turn())
            assert outcome == "handler_error"
            assert "1.j2:1: the prompt fails: division by zero" in reason
            assert ending(await s.net.turn(await s.net.ask(bob, "hi")))[0] == "finished"


@pytest.mark.behaviour("Q-6")
class TestScratchpad:
    async def turn(
        self, networks: Networks, *answers: AnyAnswer, **endpoint: Any
    ) -> tuple[Turn, list[str]]:
        """A turn of a model with a scratchpad, and all events to the person."""
        pad: JsonValue = {"scratchpad": True}
        async with scene(networks, *answers, prompt=pad, endpoint=endpoint) as s:
            turn = await s.turn("hi")
            await s.net.network.quiet()
            heard = [str(frame) for frame in await s.ann.sync()]
            assert "<scratchpad>" in s.model.requests[0].system
            assert all(SECRET not in text for text in [*heard, str(s.ann.signals)]), heard
            return turn, heard

    @pytest.mark.parametrize("stream", [False, True])
    async def test_thoughts_beside_a_call_are_recorded_and_not_sent(
        self, in_memory: Networks, stream: bool
    ) -> None:
        thinking = says(send("direct_ann", "hello"), text=f"<scratchpad>{SECRET}</scratchpad>So:")
        turn, heard = await self.turn(in_memory, thinking, says(finish()), stream=stream)
        assert (turn.steps[0].text, turn.steps[0].reasoning) == ("So:", SECRET)
        assert any("hello" in text for text in heard)

    async def test_thoughts_in_an_argument_are_removed_before_it_is_sent(
        self, in_memory: Networks
    ) -> None:
        text = f"<scratchpad>{SECRET}</scratchpad>hello"
        escaped = text.replace("<", "\\u003c")
        raw = ScriptedCall(
            tool="send_text_message", arguments=f'{{"to": "direct_ann", "text": "{escaped}"}}'
        )
        content: JsonValue = {"a": [f"x &lt;scratchpad&gt;{SECRET}", SECRET]}
        turn, heard = await self.turn(
            in_memory,
            says(send("direct_ann", text), raw),
            says(call("send_message", to="direct_ann", content=content)),
            says(finish(f"done <scratchpad>{SECRET}")),
        )
        cleaned = {"to": "direct_ann", "text": "hello"}
        assert [c.arguments for c in turn.steps[0].calls] == [cleaned] * 2
        assert turn.steps[0].reasoning == f"{SECRET}\n{SECRET}"
        assert ending(turn)[1] == "done"
        assert sum("hello" in text for text in heard) == 2

    async def test_a_call_inside_a_thought_does_not_run(self, in_memory: Networks) -> None:
        line = 'TOOL_CALL {"tool_name": "%s", "parameters": {%s}}'
        thought = line % ("send_text_message", f'"to": "direct_ann", "text": "{SECRET}"')
        done = line % ("finish", '"reason": "no"')
        text = f"<scratchpad>\n{thought}\n</scratchpad>\n{done}"
        answer = says(text=text, ignore_tool_choice=True)
        again = says(text=done, ignore_tool_choice=True)
        turn, _ = await self.turn(in_memory, answer, again, dialect="tool_call")
        assert [c.name for step in turn.steps for c in step.calls] == ["finish", "finish"]
        assert SECRET in (turn.steps[0].reasoning or "")

    async def test_a_scratchpad_is_ordinary_text_without_the_option(
        self, in_memory: Networks
    ) -> None:
        text = "write <scratchpad>…</scratchpad> around it"
        async with scene(in_memory, says(send("ann", text), finish())) as s:
            await s.turn()
            assert await s.heard() == text
