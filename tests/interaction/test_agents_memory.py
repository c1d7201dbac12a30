"""The memory of agents, across turns, crashes of their process, and restarts of the hub."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import JsonValue

from hubbub import Agent, Message
from hubbub.errors import OperationError
from hubbub.loading import load_attribute
from hubbub.protocol.turns import Turn
from tests.doc_pages import example
from tests.interaction.agent_harness import Harness, call, finish, harness, one_person, says, send
from tests.interaction.approval_harness import asked
from tests.interaction.peers import Networks, Peer
from tests.interaction.scripted import Config, scene

TOOLS: JsonValue = ["send_text_message", "remember", "recall", "forget"]
OK = send("ann", "ok")
DONE = says(finish())


def system_of(turn: Turn) -> str:
    return turn.system_prompt or ""


@pytest.mark.behaviour("E-8", "E-9", "E-10")
async def test_memory_is_shown_in_the_next_turn_and_recalled_by_another_process(
    in_memory: Networks,
) -> None:
    value: JsonValue = {"seq": 7, "empty": []}
    remembering = says(
        call("remember", key="ann.likes", value="</memory> tea"),
        call("remember", key="notes", value="x" * 300),
        call("remember", key="k", value=value),
        OK,
    )
    looking = says(call("recall", key="k"), call("recall", key="ann.like"), OK)
    answers = [remembering, DONE, says(OK), DONE, looking, DONE, says(OK), DONE]
    async with scene(in_memory, *answers, tools=TOOLS, instruction="Help.") as s:
        assert "<memory>" not in system_of(await s.turn())
        shown = system_of(await s.turn())
        await s.restart()
        turn = await s.turn()
        await s.restart(tools=None, disabled_tools=["remember", "recall", "forget"])
        assert "tea" not in system_of(await s.turn()), "memory is shown only with its tools"
    assert shown.endswith(
        '<memory>\n<entry key="ann.likes">&lt;/memory&gt; tea</entry>\n'
        '<entry key="k">{&quot;seq&quot;: 7, &quot;empty&quot;: []}</entry>\n'
        '<entry key="notes">(302 bytes: `recall` notes)</entry>\n</memory>'
    ), shown
    assert '<entry key="k">' in system_of(turn)
    hit, miss, _ = turn.steps[0].calls
    assert json.loads(hit.result or "") == {"key": "k", "value": value}
    assert miss.error == "unknown_key"
    assert json.loads(miss.result or "")["valid_names"] == ["ann.likes"]


async def test_permission_modes_cover_the_memory_tools(in_memory: Networks) -> None:
    trying = says(call("remember", key="k", value=1), call("recall"), OK)
    cases: list[tuple[str, JsonValue, str | None]] = [
        ("read_only", {}, "unknown_tool"),
        ("ask", {}, "denied"),
        ("ask", {"remember": {"permission": "read"}}, None),
    ]
    for mode, settings, error in cases:
        config: Config = {"permission_mode": mode, "tool_settings": settings}
        async with scene(in_memory, trying, DONE, tools=TOOLS, **config) as s:
            id = await s.say()
            if error == "denied":
                (approval,) = await asked(s.ann)
                await s.ann.call("deny", id=approval["id"])
            turn = await s.net.turn(id)
        remembering, recalling, _ = turn.steps[0].calls
        assert (remembering.error, recalling.error) == (error, None), (mode, settings)
        if error is not None:  # without an error, `recall` can run before or after `remember`
            assert recalling.result == "{}", (mode, settings)
        asks = "run only when a person has approved" in system_of(turn)
        assert asks == (mode == "ask")


class Counter(Agent):
    """Answers with the number of messages so far."""

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


async def answers(net: Harness, ann: Peer, *texts: str) -> list[JsonValue]:
    """The agent's answer to each message."""
    contents = []
    for text in texts:
        await net.turn(await net.ask(ann, text))
        thread = await ann.call("read_thread", thread="direct_bot")
        contents.append(thread["messages"][-1]["content"])
    return contents


@pytest.mark.behaviour("E-8")
async def test_a_python_agent_remembers_across_a_restart_of_the_hub(
    in_memory: Networks, tmp_path: Path
) -> None:
    store = f"sqlite:{tmp_path / 'town.db'}"
    runs: list[list[tuple[str, JsonValue]]] = [
        [("a", "1"), ("keys", ["count"]), ("b", "2"), ("wrong", "bad_request")],
        [("c", "3"), ("forget", "forgotten"), ("keys", [])],
    ]
    for run in runs:
        async with harness(in_memory, store=store) as net:
            ann = await net.person()
            await net.python("bot", Counter())
            texts = [text for text, _ in run]
            assert await answers(net, ann, *texts) == [answer for _, answer in run]


async def test_the_counter_of_the_docs_page_counts(in_memory: Networks, tmp_path: Path) -> None:
    page = "docs/how-to/give-an-agent-knowledge.md"
    (tmp_path / "counter.py").write_text(example(page, "counter.py"))
    counter = load_attribute("counter.py:Counter", tmp_path)
    assert isinstance(counter, type)
    assert issubclass(counter, Agent)
    async with one_person(in_memory) as (net, ann):
        for n in (1, 2):
            await net.python("bot", counter())
            assert await answers(net, ann, "hi") == [f"You have written to me {n} times."]
            await net.network.quiet()
            await net.kill("bot")
