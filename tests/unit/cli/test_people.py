"""Commands to send and list messages and to run agents, against a running network."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from hubbub.cli.connection import NetworkTarget, default_person
from hubbub.client import Client, WebSocketTransport
from tests.unit.cli.conftest import CommandResult, Shell

AGENT = "from hubbub import Agent\n\n\nclass Notes(Agent):\n    pass\n"


@pytest.mark.behaviour("U-3")
def test_messages_are_sent_and_listed_from_a_shell(
    town: str, hubbub: Shell, snapshot: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert hubbub("messages", "list").out == ""
    assert hubbub.transcript(
        "agents list",
        "send --as bob --broadcast 'I am bob'",
        "send bob hello there",
    ) == snapshot(name="beginning")
    result = hubbub("send", "-c", "general", "one\ntwo \x1b[31m @nobody")
    assert result.out == "m3 sent as ann in #general\nthere is no participant @nobody\n"
    assert (
        hubbub.transcript(
            "send --as eve general 'to some'",
            "send bob,eve 'hello both'",
            "threads list",
            "messages list",
            "messages list -n 1",
            "messages list -n 0",
            "messages list -t '#general'",
            "messages list -t broadcast",
            "messages list -t broadcast -n 0",
            "messages list --as bob -t ann",
            "threads list --as eve",
        )
        == snapshot
    )
    for name in ("direct_bob", "bob", "@bob", "dm.ann.bob"):
        assert hubbub("messages", "list", "-t", name).out.endswith("  hello there\n")
    for name in ("general", "channel_general", "channel.general"):
        assert hubbub("messages", "list", "-t", name, "-n", "1").out.endswith("  to some\n")
    in_one_page = hubbub("messages", "list", "-t", "#general").out
    monkeypatch.setattr("hubbub.cli.transcripts.MAX_PAGE", 1)
    assert hubbub("messages", "list", "-t", "#general").out == in_one_page
    none_yet = hubbub("messages", "list", "-t", "@hub")  # its first message makes the thread
    assert "you are not in a thread" in none_yet.err
    first = json.loads(hubbub("messages", "list", "--json").out.splitlines()[0])
    assert (first["sender_id"], first["content"]) == ("bob", "I am bob")
    card = {"description": "The mayor", "skills": []}
    ann = {"id": "ann", "kind": "human", "present": False, "card": card}
    assert hubbub("agents", "list", "--json").json()["participants"][0] == ann
    threads = hubbub("threads", "list", "--as", "bob", "--json").json()["threads"]
    ids = ["dm.ann.bob.eve", "channel.general", "dm.ann.bob", "broadcast"]
    assert [thread["id"] for thread in threads] == ids
    sent = hubbub("send", "--channel", "#general", "hi", "@nobody", "--json").json()
    assert (sent["thread_id"], sent["unresolved"]) == ("channel.general", ["nobody"])
    status = hubbub("network", "status", "--json").json()
    assert (status["network"], status["head"], status["channels"]) == ("town", 6, 1)
    assert "head" in hubbub("network", "status").out


def test_a_failed_command_prints_one_line_and_has_its_exit_code(
    town: str, hubbub: Shell, home: Path, snapshot: SnapshotAssertion
) -> None:
    (home / "empty.py").write_text("x = 1\n")
    hubbub("send", "--as", "bob", "--broadcast", "hi")
    lines = (
        "send nobody hi",
        "send -c generl hi",
        "send anm hi",
        "send ann",
        "send ann hi",
        "send ann '  '",
        "send -b ' '",
        "send -b hi -c general",
        "send --as hub ann hi",
        "send --as 'a b' ann hi",
        "threads list --as 'a b'",
        "threads list --as anm",
        "agents list --address 127.0.0.1:9",
        "agents list --address elsewhere",
        "messages list -t nonsense!",
        "messages list -t direct_eve",
        "messages list -t genral",
        "messages list -t bob",
        "agents run",
        "agents run bot.py --config net.yaml",
        "agents run gone.py",
        "agents run empty.py",
        "agents run --config gone.yaml",
        "prompts model-server gone.yaml",
        "prompts model-server gone.yaml --port 99999",
    )
    output = hubbub.transcript(*lines)
    assert output == snapshot
    assert output.count("(exit code ") == len(lines)
    assert output.count("\n") == 3 * len(lines)
    assert "anm" not in hubbub("agents", "list").out, "reading registers no participant"


def test_a_network_is_found_by_name_or_address(town: str, hubbub: Shell) -> None:
    host = town.removeprefix("ws://")
    for address in ("town", town, host, f"http://{host}/", f"HTTP://{host}/x?y#z"):
        assert hubbub("agents", "list", "--address", address).code == 0


def test_the_default_person_is_the_only_owner_unless_another_is_named(town: str) -> None:
    assert default_person(NetworkTarget(), None) == "ann"
    assert default_person(NetworkTarget(), "bob") == "bob"


def test_the_error_without_a_network_says_how_to_start_one(hubbub: Shell, tmp_path: Path) -> None:
    result = hubbub("agents", "list")
    assert (result.code, result.out) == (2, "")
    assert "hubbub up" in result.err
    (tmp_path / "net.yaml").write_text(
        "network: {listen: '127.0.0.1:1'}\nchannels: {dev: {}}\nbridges:\n"
        "  irc: {kind: irc, channels: {dev: '#dev'}, settings: {server: 'irc.example.org:6697'}}\n"
    )
    config = str(tmp_path / "net.yaml")
    result = hubbub("bridges", "run", "--name", "irc", "-c", config)
    assert result.code == 1
    assert "no network answers at ws://127.0.0.1:1 (Connection refused); start one" in result.err


def test_an_agent_that_is_already_connected_is_not_run_again(
    town: str, home: Path, hubbub: Shell
) -> None:
    (home / "notes.py").write_text(AGENT)

    async def while_it_runs() -> CommandResult:
        async with Client(WebSocketTransport(town), "notes", "agent"):
            return await asyncio.to_thread(hubbub, "agents", "run", "notes.py")

    result = asyncio.run(while_it_runs())
    assert (result.code, result.out) == (2, "")
    assert "already connected: notes; choose another --name, or use --replace" in result.err


async def start(*args: str) -> asyncio.subprocess.Process:
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "hubbub", *args, stdout=subprocess.PIPE, env=environment
    )


@pytest.mark.slow
async def test_agents_run_shows_the_network_it_joins_and_ends_on_ctrl_c(
    town: str, home: Path
) -> None:
    (home / "notes.py").write_text(AGENT)
    process = await start("agents", "run", "notes.py")
    assert process.stdout is not None
    async with asyncio.timeout(100):
        line = (await process.stdout.readline()).decode()
        assert line == f"notes joins town at {town}; Ctrl-C stops\n"
        async with Client(WebSocketTransport(town), "ann", "human") as ann:
            async for item in ann.events():
                if "notes" in str(item):  # it is present
                    break
        process.send_signal(signal.SIGINT)
        await process.wait()


@pytest.mark.slow
@pytest.mark.parametrize("thread", [(), ("--thread", "channel_general")])
async def test_following_prints_new_messages_until_ctrl_c(
    town: str, hubbub: Shell, thread: tuple[str, ...]
) -> None:
    await asyncio.to_thread(hubbub, "send", "-c", "general", "before")
    process = await start("messages", "list", "-f", *thread)
    assert process.stdout is not None
    async with asyncio.timeout(100):
        assert (await process.stdout.readline()).endswith(b"before\n")
        await asyncio.to_thread(hubbub, "send", "-c", "general", "after")
        assert (await process.stdout.readline()).endswith(b"after\n")
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 0
