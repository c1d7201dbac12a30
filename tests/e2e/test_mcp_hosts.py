"""MCP hosts that join a network by `hubbub mcp`: the library's own client, and opencode."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from hubbub.protocol.operations import Participants
from hubbub.testing.model_script import Answer, Call, Rule, Script, When
from hubbub.testing.model_server import ModelServer
from tests.e2e.support.config_network import environment, run_here
from tests.e2e.support.opencode import MISSING, find
from tests.unit.configs.people import Person

mcp = pytest.importorskip("mcp", reason="needs the extra `mcp`")
pytestmark = pytest.mark.slow

OPENCODE = find()
NETWORK = "network: {name: open, auth: open}\nhumans: {me: {roles: [owner]}}\n"
HUBBUB = [sys.executable, "-m", "hubbub"]


def network_file(folder: Path) -> Path:
    path = folder / "open.yaml"
    path.write_text(NETWORK)
    return path


async def pasted(folder: Path, host: str, *arguments: str) -> dict[str, Any]:
    """What `hubbub mcp config` prints for a host."""
    process = await asyncio.create_subprocess_exec(
        *HUBBUB, "mcp", "config", host, *arguments,
        stdout=asyncio.subprocess.PIPE, env=environment(folder),
    )  # fmt: skip
    out, _ = await process.communicate()
    found: dict[str, Any] = json.loads(out)
    return found


async def present(person: Person, name: str) -> None:
    async with asyncio.timeout(60):
        while True:
            answer = await person.client.call("list_participants")
            everybody = Participants.model_validate(answer).participants
            if any(p.id == name and p.present for p in everybody):
                return
            await asyncio.sleep(0.05)


@pytest.mark.behaviour("I-13")
async def test_a_client_of_the_library_joins_by_what_is_pasted(tmp_path: Path) -> None:
    async with run_here(network_file(tmp_path), tmp_path) as network:
        me = await network.join("me")
        config = await pasted(tmp_path, "claude", "--address", network.url)
        server = config["mcpServers"]["hubbub"]
        told = mcp.StdioServerParameters(**{**server, "env": environment(tmp_path)})
        async with mcp.Client(mcp.stdio_client(told)) as client:
            await me.tells("claude", "are you there?")
            heard = await client.call_tool("wait_for_messages", {})
            assert heard.structured_content["messages"][0]["content"] == "are you there?"
            await client.call_tool("send_text_message", {"text": "yes"})
            assert (await me.hears("claude")).text == "yes"


@pytest.mark.skipif(OPENCODE is None, reason=MISSING)
@pytest.mark.behaviour("I-13")
async def test_opencode_waits_for_a_message_and_answers_it(tmp_path: Path) -> None:
    wait, send = "hubbub_wait_for_messages", "hubbub_send_text_message"
    script = Script(
        rules=[
            Rule(when=When.model_validate({"system": "title generator"}), answer=Answer(text="x")),
            Rule(
                when=When(step=1, tools=[wait, send]),
                answer=Answer(calls=[Call(tool=wait, arguments={"timeout_s": 50})]),
            ),
            Rule(
                when=When.model_validate({"step": 2, "tool_result": "hello opencode"}),
                answer=Answer(calls=[Call(tool=send, arguments={"text": "hello me"})]),
            ),
            Rule(when=When(step=3), answer=Answer(text="I have answered.")),
        ]
    )
    home, workspace = tmp_path / "home", tmp_path / "workspace"
    home.mkdir()
    workspace.mkdir()
    async with (
        ModelServer(script) as model,
        run_here(network_file(tmp_path), tmp_path) as network,
    ):
        me = await network.join("me")
        config = await pasted(tmp_path, "opencode", "--address", network.url)
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": model.base_url, "apiKey": "scripted"},
            "models": {"scripted": {}},
        }
        config |= {"model": "team/scripted", "small_model": "team/scripted", "share": "disabled"}
        config |= {"provider": {"team": provider}, "autoupdate": False}
        (workspace / "opencode.json").write_text(json.dumps(config))
        process = await asyncio.create_subprocess_exec(
            str(OPENCODE), "run", "Answer whoever writes to you.",
            cwd=workspace, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            env={"HOME": str(home), "PATH": os.environ["PATH"]},
        )  # fmt: skip
        try:
            await present(me, "opencode")
            await me.tells("opencode", "hello opencode")
            assert (await me.hears("opencode")).text == "hello me"
            async with asyncio.timeout(60):
                out, _ = await process.communicate()
            assert "I have answered." in out.decode()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        assert model.mistakes == []
