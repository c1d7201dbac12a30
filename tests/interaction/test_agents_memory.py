"""Agents that remember: from one turn to another, over the death of their process and the hub's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import JsonValue

from hubbub import Agent, Message
from hubbub.errors import OperationError
from hubbub.loading import load_attribute
from hubbub.testing.model_script import AnyAnswer
from hubbub.testing.model_server import ModelServer, Script
from tests.doc_pages import example
from tests.interaction.agent_rig import Rig, call, finish, rig, says, send
from tests.interaction.approval_rig import asked
from tests.interaction.peers import Networks, Peer

TOOLS: list[JsonValue] = ["send_text_message", "remember", "recall", "forget"]


def playing(*answers: AnyAnswer) -> ModelServer:
    return ModelServer(Script(answers=list(answers)))


async def say(net: Rig, ann: Peer, text: str = "hi") -> str:
    """The system prompt of the turn that ann's message starts."""
    said = await ann.say("bot", text)
    return (await net.turn(f"bot-{said['id']}")).start.system_prompt or ""


OK = (says(send("ann", "ok")), says(finish()))


@pytest.mark.behaviour("E-8", "E-10")
async def test_what_one_turn_remembers_the_next_one_sees(in_memory: Networks) -> None:
    remembering = says(
        call("remember", key="ann.likes", value="</memory> tea"),
        call("remember", key="notes", value="x" * 300),
        *OK[0].calls,
    )
    async with playing(remembering, OK[1], *OK) as model, rig(in_memory) as net:
        ann = await net.person()
        await net.llm("bot", model, tools=TOOLS, instruction="Help.")
        assert "<memory>" not in await say(net, ann)
        text = await say(net, ann)
    assert text.endswith(
        '<memory>\n<entry key="ann.likes">&lt;/memory&gt; tea</entry>\n'
        '<entry key="notes">(302 bytes: `recall` notes)</entry>\n</memory>'
    )


@pytest.mark.behaviour("E-8")
async def test_it_outlives_the_agents_process(in_memory: Networks) -> None:
    remembering = says(call("remember", key="k", value={"seq": 7, "empty": []}), *OK[0].calls)
    recalling = says(call("recall", key="k"), *OK[0].calls)
    async with playing(remembering, OK[1], recalling, OK[1]) as model, rig(in_memory) as net:
        ann = await net.person()
        await net.llm("bot", model, tools=TOOLS)
        await say(net, ann)
        await net.kill("bot")
        await net.llm("bot", model, tools=TOOLS)
        said = await ann.say("bot", "and?")
        turn = await net.turn(f"bot-{said['id']}")
    assert '<entry key="k">' in (turn.start.system_prompt or "")
    recalled = json.loads(turn.steps[0].calls[0].result or "")
    assert recalled == {"key": "k", "value": {"seq": 7, "empty": []}}


async def test_without_its_tools_nothing_is_asked_or_shown(in_memory: Networks) -> None:
    remembering = says(call("remember", key="k", value="secret"), *OK[0].calls)
    async with playing(remembering, OK[1], *OK) as model, rig(in_memory) as net:
        ann = await net.person()
        await net.llm("bot", model, tools=TOOLS)
        await say(net, ann)
        await net.kill("bot")
        await net.llm("bot", model, disabled_tools=["remember", "recall", "forget"])
        text = await say(net, ann)
    assert "secret" not in text


async def test_an_agent_that_only_reads_recalls_but_does_not_remember(
    in_memory: Networks,
) -> None:
    trying = says(call("remember", key="k", value=1), call("recall"), *OK[0].calls)
    async with playing(trying, OK[1]) as model, rig(in_memory) as net:
        ann = await net.person()
        await net.llm("bot", model, tools=TOOLS, permission_mode="read_only")
        said = await ann.say("bot", "hi")
        turn = await net.turn(f"bot-{said['id']}")
    refused, listed, _ = turn.steps[0].calls
    assert refused.error == "unknown_tool"
    assert (listed.error, listed.result) == (None, "{}")


@pytest.mark.parametrize(("allowed", "error"), [(False, "denied"), (True, None)])
async def test_an_agent_that_asks_first_asks_before_it_remembers(
    in_memory: Networks, allowed: bool, error: str | None
) -> None:
    settings: dict[str, JsonValue] = {"remember": {"permission": "read"}} if allowed else {}
    trying = says(call("remember", key="k", value=1), call("recall"), *OK[0].calls)
    async with playing(trying, OK[1]) as model, rig(in_memory) as net:
        ann = await net.person()
        await net.llm("bot", model, tools=TOOLS, permission_mode="ask", tool_settings=settings)
        said = await ann.say("bot", "hi")
        if not allowed:
            (approval,) = await asked(ann)
            await ann.call("deny", id=approval["id"])
        turn = await net.turn(f"bot-{said['id']}")
    remembering, recalling, _ = turn.steps[0].calls
    assert (remembering.error, recalling.error) == (error, None)
    assert "run only when a person has approved" in (turn.start.system_prompt or "")


@pytest.mark.behaviour("E-9")
async def test_an_unknown_key_is_told_with_near_ones(in_memory: Networks) -> None:
    asking = says(call("remember", key="likes", value=1), call("recall", key="like"))
    again = says(call("recall", key="like"), *OK[0].calls)
    async with playing(asking, again, OK[1]) as model, rig(in_memory) as net:
        ann = await net.person()
        await net.llm("bot", model, tools=TOOLS)
        said = await ann.say("bot", "hi")
        turn = await net.turn(f"bot-{said['id']}")
    made = turn.steps[1].calls[0]
    assert made.error == "unknown_key"
    assert json.loads(made.result or "")["valid_names"] == ["likes"]


class Counter(Agent):
    """Counts messages, and says how many there were."""

    async def on_direct(self, message: Message) -> JsonValue:
        if message.text == "forget":
            await self.forget("count")
            await self.forget("count")
            return "forgotten"
        if message.text == "keys":
            return list(await self.recall_keys())
        if message.text == "wrong":
            try:
                await self.recall("no key")
            except OperationError as exc:
                return str(exc.code)
        count = await self.recall("count", 0)
        assert isinstance(count, int)
        await self.remember("count", count + 1)
        return f"{count + 1}"


@pytest.mark.behaviour("E-8")
async def test_python_agents_remember_too(tmp_path: Path) -> None:
    networks = Networks(sockets=False)
    store = f"sqlite:{tmp_path / 'town.db'}"
    for expected in (["1", ["count"], "2", "bad_request"], ["3", ["count"], "4", "bad_request"]):
        async with rig(networks, store=store) as net:
            ann = await net.person()
            await net.python("bot", Counter())
            told = []
            for text in ("a", "keys", "b", "wrong"):
                said = await ann.say("bot", text)
                await net.turn(f"bot-{said['id']}")
                told.append((await ann.call("read_thread", thread="direct_bot"))["messages"][-1])
            assert [message["content"] for message in told] == expected
    async with rig(networks, store=store) as net:
        ann = await net.person()
        await net.python("bot", Counter())
        for text in ("forget", "keys"):
            said = await ann.say("bot", text)
            await net.turn(f"bot-{said['id']}")
        last = (await ann.call("read_thread", thread="direct_bot"))["messages"][-1]
        assert last["content"] == []


async def test_the_counter_of_the_page_counts(in_memory: Networks, tmp_path: Path) -> None:
    page = "docs/how-to/give-an-agent-knowledge.md"
    (tmp_path / "counter.py").write_text(example(page, "counter.py"))
    counter = load_attribute("counter.py:Counter", tmp_path)
    assert isinstance(counter, type)
    assert issubclass(counter, Agent)
    async with rig(in_memory) as net:
        ann = await net.person()
        for n in (1, 2):
            await net.python("bot", counter())
            said = await ann.say("bot", "hi")
            await net.turn(f"bot-{said['id']}")
            last = (await ann.call("read_thread", thread="direct_bot"))["messages"][-1]
            assert last["content"] == f"You have written to me {n} times."
            await net.kill("bot")
