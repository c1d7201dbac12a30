"""A process of agents: which ones, where they join, and that they do."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

import pytest

from hubbub.app.agents import AgentJob, Job, from_config, from_file, run_job
from hubbub.client import Client
from hubbub.client.runfile import RunFile, write_run_file
from hubbub.config.models import AgentConfig
from hubbub.errors import ConfigError, HubbubError, UserError
from hubbub.protocol.frames import Event
from hubbub.protocol.operations import Participants
from hubbub.testing.network import LocalNetwork
from tests.unit.app.conftest import Write

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


@pytest.fixture
def config(write: Write) -> Path:
    write("echo.py", ECHO)
    return write("net.yaml", CONFIG)


@pytest.fixture
def run_file(write: Write) -> RunFile:
    """A network that seems to run here, with tokens."""
    run = RunFile(network="n", url="ws://127.0.0.1:4999", pid=os.getpid(), tokens={"echo": "t1"})
    write_run_file(run)
    return run


def test_the_launcher_says_where_and_with_which_tokens(config: Path) -> None:
    environ = {
        "HUBBUB_URL": "ws://127.0.0.1:7",
        "HUBBUB_TOKENS": json.dumps({"echo": "hub_t"}),
        "HUBBUB_RUN": "r1",
    }
    job = from_config(config, ["echo"], None, None, environ)
    assert (job.url, job.run, job.folder) == ("ws://127.0.0.1:7", "r1", config.parent)
    assert [(a.name, a.token) for a in job.agents] == [("echo", "hub_t")]


def test_without_names_all_agents_run(config: Path) -> None:
    job = from_config(config, [], "127.0.0.1:7", "hub_x", {})
    assert [(a.name, a.token) for a in job.agents] == [("echo", "hub_x"), ("other", "hub_x")]
    assert job.run is None


def test_without_a_launcher_the_configs_own_address_counts(config: Path) -> None:
    assert from_config(config, [], None, None, {}).url == "ws://127.0.0.1:4820"


def test_an_unknown_agent_is_answered_with_the_nearest(config: Path) -> None:
    with pytest.raises(ConfigError, match=r"there is no agent 'ecko'; did you mean 'echo'\?"):
        from_config(config, ["ecko"], None, None, {})


def test_a_file_with_one_agent_needs_no_more(config: Path, run_file: RunFile) -> None:
    job = from_file(Path("echo.py"), None, [], None, None)
    (agent,) = job.agents
    assert (job.url, agent.name, agent.token) == (run_file.url, "echo", "t1")
    assert agent.config.class_ == f"{config.parent}/echo.py:Echo"


@pytest.mark.parametrize(
    ("class_", "name"),
    [("Echo", "echo"), ("WordCounter", "word-counter"), ("HTTPBot2Go", "httpbot2-go")],
)
def test_an_agent_is_called_like_its_class(write: Write, class_: str, name: str) -> None:
    write(f"{name}.py", ECHO.replace("Echo", class_))
    job = from_file(Path(f"{name}.py"), None, [], "127.0.0.1:7", None)
    assert job.agents[0].name == name


def test_a_name_given_on_the_command_line_counts(config: Path) -> None:
    job = from_file(Path("echo.py"), "Echo", ["parrot"], "127.0.0.1:7", "tok")
    assert (job.agents[0].name, job.agents[0].token) == ("parrot", "tok")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = 1\n", "bots.py: defines no subclass"),
        (
            ECHO + "class Second(Echo): ...\n",
            "several agents, say which with --class: Echo, Second",
        ),
        ("1 / 0\n", "bots.py:1: importing it raises ZeroDivisionError"),
    ],
)
def test_a_file_without_a_clear_agent_is_told(write: Write, text: str, expected: str) -> None:
    path = write("bots.py", text.lstrip())
    with pytest.raises(ConfigError) as caught:
        from_file(path, None, [], "127.0.0.1:7", None)
    assert expected in str(caught.value)


@pytest.mark.parametrize("names", [["a", "b"], ["hub"], ["a b"]])
def test_a_file_is_one_agent_with_a_legal_name(config: Path, names: list[str]) -> None:
    with pytest.raises(UserError):
        from_file(Path("echo.py"), None, names, "127.0.0.1:7", None)


async def hear(client: Client, condition: Callable[[Event], bool]) -> Event:
    """The first event for which the condition holds."""
    async with asyncio.timeout(30):
        async with aclosing(client.events()) as events:
            async for item in events:
                if isinstance(item, Event) and condition(item):
                    return item
    raise AssertionError("the events ended")


def job_for(network: LocalNetwork, folder: Path, *names: str, run: str | None = None) -> Job:
    config = AgentConfig(kind="python", class_=f"{folder}/echo.py:Echo", greet="hello")
    agents = tuple(AgentJob(name, config, None) for name in names)
    return Job(network.url, agents, {}, folder, run)


async def test_the_agents_of_a_process_join_and_work(config: Path) -> None:
    async with LocalNetwork(sockets=True) as network:
        ann = await network.join("ann", "human")
        task = asyncio.create_task(run_job(job_for(network, config.parent, "one", "two")))
        heard: set[str] = set()

        def both(event: Event) -> bool:
            heard.add(event.message.sender_id)
            return heard == {"one", "two"}

        await hear(ann, both)
        await ann.call("send_text_message", to="two", text="hi")
        answer = await hear(ann, lambda event: event.message.text == "echo hi")
        assert answer.message.sender_id == "two"
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()


async def test_an_agent_greets_once_however_often_it_starts(config: Path) -> None:
    async with LocalNetwork(sockets=True) as network:
        ann = await network.join("ann", "human")
        job = job_for(network, config.parent, "one", run="r1")
        for _ in range(2):
            task = asyncio.create_task(run_job(job))
            async with asyncio.timeout(30):
                while "one" not in await known(ann):
                    pass
            await ann.call("send_text_message", to="one", text="are you up?")
            await hear(ann, lambda event: event.message.text == "echo are you up?")
            task.cancel()
            await asyncio.wait([task])
        assert network.hub.state.broadcast.tseq == 1


async def known(client: Client) -> set[str]:
    value = await client.call("list_participants")
    return {p.id for p in Participants.model_validate(value).participants}


async def test_a_network_that_is_not_there_is_one_sentence(config: Path) -> None:
    async with LocalNetwork(sockets=True) as network:
        job = job_for(network, config.parent, "one")
    with pytest.raises(ExceptionGroup) as caught:
        await run_job(job)
    assert caught.group_contains(HubbubError, match="no network answers at ws://127.0.0.1")
