"""What the pages tell a reader to write and run does what they say."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path

import pytest

from hubbub.client import Client, WebSocketTransport
from hubbub.client.runfile import RunFile
from hubbub.testing.model_server import ModelServer, load_script
from tests.doc_pages import blocks, example
from tests.e2e.support.agents import all_present, running_agent
from tests.e2e.support.hubs import DEADLINE_S, ROOT, running_hub
from tests.unit.configs.people import Person

pytestmark = [pytest.mark.slow, pytest.mark.timeout(80)]

README = "README.md"
TUTORIAL = "docs/tutorial.md"
OTHER_LANGUAGE = "docs/how-to/connect-from-another-language.md"


def _environment(folder: Path, **more: str) -> dict[str, str]:
    """What a reader's shell has: nothing of this machine's models and networks."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("HUBBUB_", "OPENAI_"))}
    return {**kept, "HUBBUB_STATE_DIR": str(folder), "PYTHONUNBUFFERED": "1", **more}


@asynccontextmanager
async def _up(config: Path, folder: Path, environment: Mapping[str, str]) -> AsyncIterator[str]:
    """`hubbub up` on a free port; gives the URL."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "hubbub", "up", str(config), "--json",
        "--listen", "127.0.0.1:0", "--store", f"sqlite:{folder / 'network.db'}",
        stdout=PIPE, cwd=folder, env={**environment, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert process.stdout is not None
    drain = asyncio.create_task(asyncio.sleep(0))
    try:
        line = await asyncio.wait_for(process.stdout.readline(), DEADLINE_S)
        drain = asyncio.create_task(_read_on(process.stdout))
        yield str(json.loads(line)["url"])
        process.terminate()
        assert await asyncio.wait_for(process.wait(), DEADLINE_S) == 0
    finally:
        drain.cancel()
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _read_on(output: asyncio.StreamReader) -> None:
    while await output.readline():
        pass


@asynccontextmanager
async def _person(url: str, name: str, token: str | None = None) -> AsyncIterator[Person]:
    async with Client(WebSocketTransport(url), name, "human", token=token) as client:
        yield Person(client)


def _token(folder: Path, name: str) -> str | None:
    """What `hubbub chat` on this machine would find by itself."""
    (file,) = (folder / "run").glob("*.json")
    return RunFile.model_validate_json(file.read_bytes()).tokens.get(name)


async def test_the_agent_of_the_readme_keeps_notes(tmp_path: Path) -> None:
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
async def test_the_raw_participant_of_the_readme_prints_what_is_shown(tmp_path: Path) -> None:
    config = ROOT / "configs" / "quickstart.yaml"
    async with _up(config, tmp_path, _environment(tmp_path)) as url:
        await all_present(url, "calculator", "concierge", "librarian")
        file = tmp_path / "raw.py"
        file.write_text(example(README, "raw.py").replace("ws://127.0.0.1:4820", url))
        process = await asyncio.create_subprocess_exec(sys.executable, str(file), stdout=PIPE)
        printed, _ = await asyncio.wait_for(process.communicate(), DEADLINE_S)
    shown = [block.text for block in blocks(ROOT / README) if "here are" in block.text]
    assert printed.decode().replace(", watcher", "") == shown[-1]


@pytest.mark.behaviour("U-4")
async def test_the_tutorial_leads_to_votes_and_a_host_who_knows_them(tmp_path: Path) -> None:
    for name in ("hubbub.yaml", "poll.py", "model.yaml"):
        (tmp_path / name).write_text(example(TUTORIAL, name))
    async with ModelServer(load_script(tmp_path / "model.yaml")) as model:
        environment = _environment(tmp_path, OPENAI_BASE_URL=model.base_url)
        async with (
            _up(tmp_path / "hubbub.yaml", tmp_path, environment) as url,
            _person(url, "ann", _token(tmp_path, "ann")) as ann,
        ):
            await all_present(url, "poll", "host")
            await ann.posts("lunch", "@poll pizza")
            assert (await ann.hears("poll")).text == "ann: pizza"
            await ann.posts("lunch", "@poll soup")
            assert (await ann.hears("poll")).text == "ann: soup"
            await ann.posts("lunch", "@poll result")
            assert (await ann.hears("poll")).text == "soup 1"
            assert await ann.asks("host", "what do people want to eat?") == "I will find out."
            assert (await ann.hears("host")).text == "The votes so far: soup 1"
        assert model.mistakes == []


@cache
def _node() -> list[str]:
    """The command for Node with a WebSocket of its own; empty if there is none here."""
    for command in (["node"], ["node", "--experimental-websocket"]):
        if shutil.which("node") is None:
            return []
        asked = subprocess.run(
            [*command, "-e", "process.exit(typeof WebSocket === 'function' ? 0 : 1)"],
            capture_output=True,
            check=False,
        )
        if asked.returncode == 0:
            return command
    return []


@pytest.mark.skipif(not _node(), reason="no Node with a WebSocket of its own")
async def test_the_participant_in_javascript_survives_a_kill_of_the_hub(tmp_path: Path) -> None:
    file = tmp_path / "echo.mjs"
    file.write_text(example(OTHER_LANGUAGE, "echo.mjs"))
    async with running_hub(tmp_path) as hub:
        process = await asyncio.create_subprocess_exec(
            *_node(), str(file), hub.url, stdout=PIPE, stderr=PIPE
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
