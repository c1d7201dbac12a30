"""A process of agents: which ones, where they join, and that they do; and what it is told."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

import pytest

from hubbub.app.agents import AgentJob, AgentsJob, from_config, from_file, run_job
from hubbub.app.lifeline import agent_tokens
from hubbub.app.supervisor import units
from hubbub.client import Client
from hubbub.client.runfile import RunFile, write_run_file
from hubbub.config.models import AgentConfig
from hubbub.errors import ConfigError, HubbubError, UserError
from hubbub.protocol.frames import Event
from hubbub.protocol.operations import Participants
from hubbub.testing.network import LocalNetwork
from tests.unit.conftest import Loading, Write

ECHO = """
from hubbub.agents.python.agent import Agent

class Echo(Agent):
    async def on_direct(self, message):
        return f"echo {message.text}"
"""
CONFIG = """
models: {default: {model: m}}
agents:
  echo: {kind: python, class: echo.py:Echo}
  other: {kind: python, class: echo.py:Echo, greet: I am here}
"""
THREE = """
    agents:
      a: {kind: python, class: bot.py:Bot}
      b: {kind: python, class: bot.py:Bot, process: shared}
      c: {kind: python, class: bot.py:Bot, process: shared}
    """
TOKENS = {"a": "hub_secret_a", "b": "hub_secret_b", "c": "hub_secret_c", "operator": "hub_op"}
HERE = "127.0.0.1:7"


@pytest.fixture
def config(write: Write) -> Path:
    write("echo.py", ECHO)
    return write("net.yaml", CONFIG)


@pytest.mark.behaviour("L-6")
def test_a_process_gets_its_agents_and_their_tokens_only_and_none_on_its_command_line(
    loading: Loading, write: Write
) -> None:
    write("bot.py", "class Bot: ...\n")
    own, shared = units(loading(THREE), "ws://h:1", TOKENS, "run1")
    assert (own.agents, shared.agents) == (("a",), ("b", "c"))
    assert list(shared.command)[-2:] == ["b", "c"]
    assert list(own.command)[:3] == [sys.executable, "-m", "hubbub.cli.agent_process"]
    assert not any("secret" in word for unit in (own, shared) for word in unit.command)
    assert agent_tokens(own.environment) == {"a": "hub_secret_a"}
    assert agent_tokens(shared.environment) == {"b": "hub_secret_b", "c": "hub_secret_c"}
    assert own.environment["HUBBUB_URL"] == "ws://h:1"
    assert own.environment["HUBBUB_RUN"] == "run1"
    assert agent_tokens({}) == agent_tokens({"HUBBUB_TOKENS": ""}) == {}
    assert units(loading("humans: {ann: {}}"), "ws://h:1", TOKENS, "run1") == []


def test_the_agents_of_a_config_are_told_where_to_join_and_with_which_tokens(config: Path) -> None:
    environ = {
        "HUBBUB_URL": "ws://127.0.0.1:7",
        "HUBBUB_TOKENS": json.dumps({"echo": "hub_t"}),
        "HUBBUB_RUN": "r1",
    }
    job = from_config(config, ["echo"], None, None, environ)
    assert (job.url, job.run, job.folder) == ("ws://127.0.0.1:7", "r1", config.parent)
    assert [(a.name, a.token) for a in job.agents] == [("echo", "hub_t")]
    job = from_config(config, [], HERE, "hub_x", {})
    assert [(a.name, a.token) for a in job.agents] == [("echo", "hub_x"), ("other", "hub_x")]
    assert job.run is None
    assert from_config(config, [], None, None, {}).url == "ws://127.0.0.1:4820"
    with pytest.raises(ConfigError, match=r"there is no agent 'ecko'; did you mean 'echo'\?"):
        from_config(config, ["ecko"], None, None, {})


def test_a_file_is_one_agent_called_like_its_class_or_as_it_is_told(
    config: Path, write: Write
) -> None:
    run = RunFile(network="n", url="ws://127.0.0.1:4999", pid=os.getpid(), tokens={"echo": "t1"})
    write_run_file(run)  # a network that seems to run here, with tokens
    job = from_file(Path("echo.py"), None, [], None, None)
    (agent,) = job.agents
    assert (job.url, agent.name, agent.token) == (run.url, "echo", "t1")
    assert agent.config.class_ == f"{config.parent}/echo.py:Echo"
    (agent,) = from_file(Path("echo.py"), "Echo", ["parrot"], HERE, "tok").agents
    assert (agent.name, agent.token) == ("parrot", "tok")
    for class_, name in (("WordCounter", "word-counter"), ("HTTPBot2Go", "httpbot2-go")):
        write(f"{name}.py", ECHO.replace("Echo", class_))
        assert from_file(Path(f"{name}.py"), None, [], HERE, None).agents[0].name == name
    for names in (["a", "b"], ["hub"], ["a b"]):
        with pytest.raises(UserError):
            from_file(Path("echo.py"), None, names, HERE, None)
    second = ECHO + "class Second(Echo): ...\n"
    for n, (text, expected) in enumerate(
        (
            ("x = 1\n", "bots0.py: defines no subclass"),
            (second, "several agents; choose one with --class: Echo, Second"),
            ("1 / 0\n", "bots2.py:1: importing it raises ZeroDivisionError"),
        )
    ):
        with pytest.raises(ConfigError) as caught:
            from_file(write(f"bots{n}.py", text.lstrip()), None, [], HERE, None)
        assert expected in str(caught.value)


async def hear(client: Client, condition: Callable[[Event], bool]) -> Event:
    """The first event for which the condition holds."""
    async with asyncio.timeout(100):
        async with aclosing(client.events()) as events:
            async for item in events:
                if isinstance(item, Event) and condition(item):
                    return item
    raise AssertionError("the events ended")


def job_for(network: LocalNetwork, folder: Path, *names: str, run: str | None = None) -> AgentsJob:
    config = AgentConfig(kind="python", class_=f"{folder}/echo.py:Echo", greet="hello")
    agents = tuple(AgentJob(name, config, None) for name in names)
    return AgentsJob(network.url, agents, {}, folder, run)


async def test_the_agents_of_a_process_join_work_and_greet_once(config: Path) -> None:
    async with LocalNetwork(sockets=True) as network:
        ann = await network.join("ann", "human")
        job = job_for(network, config.parent, "one", "two", run="r1")
        for _ in range(2):
            task = asyncio.create_task(run_job(job))
            async with asyncio.timeout(100):
                while {"one", "two"} - await known(ann):
                    pass
            await ann.call("send_text_message", to="two", text="hi")
            answer = await hear(ann, lambda event: event.message.text == "echo hi")
            assert answer.message.sender_id == "two"
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()
        assert network.hub.kernel.state.broadcast.tseq == 2  # each has greeted
    with pytest.raises(ExceptionGroup) as caught:
        await run_job(job)
    assert caught.group_contains(HubbubError, match="no network answers at ws://127.0.0.1")


async def known(client: Client) -> set[str]:
    value = await client.call("list_participants")
    return {p.id for p in Participants.model_validate(value).participants}
