"""A process of agents: its agents, their tokens, and where they join."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from hubbub.app.agents import AgentJob, AgentsJob, from_config, from_file, run_job
from hubbub.app.lifeline import agent_tokens
from hubbub.app.units import units
from hubbub.client import Client
from hubbub.client.runfile import RunFile, write_run_file
from hubbub.config.models import AgentConfig
from hubbub.errors import ConfigError, HubbubError, UserError
from hubbub.protocol.frames import Event
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
def test_a_process_gets_the_tokens_of_its_own_agents_and_only_in_its_environment(
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


def test_the_agents_of_a_config_get_their_url_and_tokens(config: Path) -> None:
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


def test_a_file_is_one_agent_named_after_its_class_or_by_an_argument(
    config: Path, write: Write
) -> None:
    run = RunFile(network="n", url="ws://127.0.0.1:4999", pid=os.getpid(), tokens={"echo": "t1"})
    write_run_file(run)  # as if a network ran on this machine
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


def test_a_file_without_exactly_one_agent_is_refused(write: Write) -> None:
    second = ECHO + "class Second(Echo): ...\n"
    for n, (text, expected) in enumerate(
        (
            ("x = 1\n", "bots0.py: defines no subclass"),
            (second, "several agents; choose one with --class: Echo, Second"),
            ("1 / 0\n", "bots2.py:1: importing it raises ZeroDivisionError"),
            (ECHO.replace("on_direct", "on_driect"), "bots3.py: Echo has the handler 'on_driect'"),
        )
    ):
        with pytest.raises(ConfigError) as caught:
            from_file(write(f"bots{n}.py", text.lstrip()), None, [], HERE, None)
        assert expected in str(caught.value)


async def sender_of(client: Client, text: str) -> str:
    """Wait for a message with this text; returns its sender."""
    async with asyncio.timeout(100):
        async for item in client.events():
            if isinstance(item, Event) and item.message.text == text:
                return item.message.sender_id
    raise AssertionError("the events ended")


def job_for(network: LocalNetwork, folder: Path, *names: str, run: str | None = None) -> AgentsJob:
    config = AgentConfig(kind="python", class_=f"{folder}/echo.py:Echo", greet="hello")
    agents = tuple(AgentJob(name, config, None) for name in names)
    return AgentsJob(network.url, agents, {}, folder, run)


async def test_the_agents_of_a_process_join_answer_and_greet_once_per_run(config: Path) -> None:
    async with LocalNetwork(sockets=True) as network:
        ann = await network.join("ann", "human")
        job = job_for(network, config.parent, "one", "two", run="r1")
        for life in range(2):
            task = asyncio.create_task(run_job(job))
            if life == 0:
                assert {await sender_of(ann, "hello") for _ in job.agents} == {"one", "two"}
            for name in ("one", "two"):
                await ann.call("send_text_message", to=name, text="hi")
                assert await sender_of(ann, "echo hi") == name
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()
        assert network.hub.kernel.state.broadcast.tseq == 2, "one greeting of each agent"
    with pytest.raises(ExceptionGroup) as caught:
        await run_job(job)
    assert caught.group_contains(HubbubError, match="no network answers at ws://127.0.0.1")


async def test_a_failed_start_of_an_agent_is_reported_with_file_and_line(write: Write) -> None:
    start = "    async def on_start(self):\n        raise LookupError('no data')\n"
    folder = write("echo.py", ECHO + start).parent
    async with LocalNetwork(sockets=True) as network:
        with pytest.raises(ExceptionGroup) as caught:
            await run_job(job_for(network, folder, "one"))
    failure = r"^one: .*echo\.py:7 raises LookupError: no data$"
    assert caught.group_contains(HubbubError, match=failure)
