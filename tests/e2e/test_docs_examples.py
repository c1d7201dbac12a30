"""The examples of the pages work as the pages show."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hubbub.client import Client, WebSocketTransport
from hubbub.testing.model_server import ModelServer, load_script
from tests.doc_pages import blocks, example
from tests.e2e.support.agents import all_present, running_agent
from tests.e2e.support.config_network import ROOT, environment, run_here
from tests.e2e.support.forked import DEADLINE_S, Forked, hubbub
from tests.e2e.support.hubs import running_hub
from tests.e2e.support.node import node
from tests.unit.configs.people import Person

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

README = "README.md"
TUTORIAL = "docs/tutorial.md"
OTHER_LANGUAGE = "docs/how-to/connect-from-another-language.md"


@asynccontextmanager
async def _person(url: str, name: str) -> AsyncIterator[Person]:
    async with Client(WebSocketTransport(url), name, "human") as client:
        yield Person(client)


async def test_the_readme_agent_keeps_its_notes_across_a_kill(tmp_path: Path) -> None:
    file = tmp_path / "notes.py"
    file.write_text(example(README, "notes.py"))
    async with running_hub(tmp_path) as hub, _person(hub.url, "ann") as ann:
        arguments = [str(file), "--address", hub.url.removeprefix("ws://")]
        async with running_agent(tmp_path, arguments) as agent:
            await all_present(hub.url, "notes")
            assert await ann.asks("notes", "buy milk") == "noted"
            await agent.kill()
            await agent.start()
            assert await ann.asks("notes", "call bob") == "noted"
            assert await ann.asks("notes", "list") == "- buy milk\n- call bob"


@pytest.mark.behaviour("U-4")
async def test_the_shortest_participant_prints_the_documented_output_on_every_run(
    tmp_path: Path,
) -> None:
    config = ROOT / "configs" / "quickstart.yaml"
    (shown,) = [b.text for b in blocks(ROOT / OTHER_LANGUAGE) if b.text.startswith("here are")]
    async with run_here(config, tmp_path) as network:
        url = network.url
        file = tmp_path / "raw.py"
        file.write_text(example(OTHER_LANGUAGE, "raw.py").replace("ws://127.0.0.1:4820", url))
        assert await _output_of(file) == shown
        async with _person(url, "watcher") as watcher:  # sent while raw.py is offline
            await watcher.broadcasts("@calculator 1 + 1")
            await watcher.hears("calculator")
        assert await _output_of(file) == shown


async def _output_of(program: Path) -> str:
    process = await asyncio.create_subprocess_exec(sys.executable, str(program), stdout=PIPE)
    printed, _ = await asyncio.wait_for(process.communicate(), DEADLINE_S)
    return printed.decode().replace(", watcher", "")  # the test's own participant


@asynccontextmanager
async def _chat(folder: Path) -> AsyncIterator[Process]:
    """`hubbub chat --as ann`, for `_type_step`."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "hubbub", "chat", "--as", "ann",
        stdin=PIPE, stdout=PIPE, cwd=folder, env=environment(folder),
    )  # fmt: skip
    try:
        yield process
        await asyncio.wait_for(process.communicate(b"/quit\n"), DEADLINE_S)
        assert process.returncode == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _type_step(chat: Process, step: str) -> None:
    """Types the lines of a step of the tutorial; the lines it shows must appear in that order.

    Each message is typed once the output of the previous one has appeared.
    """
    assert chat.stdin is not None
    assert chat.stdout is not None
    shown = example(TUTORIAL, f"{step}.shown").splitlines()
    for line in example(TUTORIAL, f"{step}.chat").splitlines():
        chat.stdin.write(line.encode() + b"\n")
        if line.startswith("/open"):
            continue
        expected = [shown.pop(0)]
        while shown and not shown[0].endswith("✓"):
            expected.append(shown.pop(0))
        async with asyncio.timeout(DEADLINE_S):
            while expected:
                printed = (await chat.stdout.readline()).decode().rstrip()
                if printed.endswith(f" {expected[0]}"):  # after the time
                    del expected[0]
    assert shown == []


async def _output(folder: Path, *words: str) -> str:
    """The output of a command."""
    output = folder / "output.txt"
    output.unlink(missing_ok=True)
    command = Forked(folder, output, environment(folder), hubbub, *words)
    assert await command.wait() == 0
    return output.read_text()


@pytest.mark.behaviour("U-4")
async def test_following_the_tutorial_gives_the_output_it_shows(tmp_path: Path) -> None:
    for name in ("poll.py", "model.yaml"):
        (tmp_path / name).write_text(example(TUTORIAL, name))
    config = tmp_path / "hubbub.yaml"
    async with ModelServer(load_script(tmp_path / "model.yaml")) as model:
        variables = {"OPENAI_BASE_URL": model.base_url}
        config.write_text(example(TUTORIAL, "first/hubbub.yaml"))
        async with run_here(config, tmp_path) as network:
            await network.join("ann")
        with config.open("a") as file:
            file.write(example(TUTORIAL, "poll.yaml"))
        async with run_here(config, tmp_path), _chat(tmp_path) as chat:
            await _type_step(chat, "votes")
        config.write_text(example(TUTORIAL, "hubbub.yaml"))
        async with run_here(config, tmp_path, variables):
            async with _chat(tmp_path) as chat:
                await _type_step(chat, "question")
                await _type_step(chat, "again")
            commands = example(TUTORIAL, "look.sh").splitlines()
            outputs = [await _output(tmp_path, *line.split()[1:]) for line in commands]
        assert model.mistakes == []
    assert "host-m7" in outputs[0]
    assert "@poll pizza" in outputs[1]
    assert "result" in outputs[1]
    assert "".join(outputs[2:]) == example(TUTORIAL, "look.shown")


@pytest.mark.skipif(not node(), reason="no Node with a built-in WebSocket")
async def test_the_javascript_participant_survives_a_hub_kill(tmp_path: Path) -> None:
    file = tmp_path / "echo.mjs"
    file.write_text(example(OTHER_LANGUAGE, "echo.mjs"))
    async with running_hub(tmp_path) as hub:
        process = await asyncio.create_subprocess_exec(
            *node(), str(file), hub.url, stdout=PIPE, stderr=PIPE
        )
        try:
            assert process.stdout is not None
            await asyncio.wait_for(process.stdout.readline(), DEADLINE_S)
            async with _person(hub.url, "ann") as ann:
                assert await ann.asks("echo", "one") == "you said: one"
                await hub.kill()
                await hub.start()
                assert await ann.asks("echo", "two") == "you said: two"
                assert await ann.asks("echo", "three") == "you said: three"
                own = [m.text for m in ann.heard if m.sender_id == "echo"]
                assert own == ["you said: one", "you said: two", "you said: three"]
        finally:
            if process.returncode is None:
                process.kill()
            await process.communicate()
