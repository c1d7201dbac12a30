"""MCP hosts over `hubbub mcp` and HTTP: the library's client, opencode, the protocol's tools."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from hubbub.network.store.offline import add_token_offline
from hubbub.testing.model_script import Script, ScriptedAnswer, ScriptedCall, ScriptRule, When
from hubbub.testing.model_server import ModelServer
from tests.e2e.support.agents import all_present
from tests.e2e.support.config_network import environment, run_here
from tests.e2e.support.conformance import INSPECTOR, command
from tests.e2e.support.conformance import MISSING as NO_SUITE
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


async def printed_config(folder: Path, host: str, *arguments: str) -> dict[str, Any]:
    """The output of `hubbub mcp config` for a host."""
    process = await asyncio.create_subprocess_exec(
        *HUBBUB, "mcp", "config", host, *arguments,
        stdout=asyncio.subprocess.PIPE, env=environment(folder),
    )  # fmt: skip
    out, _ = await process.communicate()
    config: dict[str, Any] = json.loads(out)
    return config


@pytest.mark.behaviour("I-13")
async def test_an_mcp_client_joins_with_the_printed_config(tmp_path: Path) -> None:
    async with run_here(network_file(tmp_path), tmp_path) as network:
        me = await network.join("me")
        config = await printed_config(tmp_path, "claude", "--address", network.url)
        server = config["mcpServers"]["hubbub"]
        parameters = mcp.StdioServerParameters(**{**server, "env": environment(tmp_path)})
        async with mcp.Client(mcp.stdio_client(parameters)) as client:
            await me.tells("claude", "are you there?")
            result = await client.call_tool("wait_for_messages", {})
            assert result.structured_content["messages"][0]["content"] == "are you there?"
            await client.call_tool("send_text_message", {"text": "yes"})
            assert (await me.hears("claude")).text == "yes"


async def test_a_call_with_a_text_cut_in_the_middle_of_an_emoji_is_answered(
    tmp_path: Path,
) -> None:
    call = {"name": "send_text_message", "arguments": {"to": "me", "text": "well done \ud83d"}}
    hello = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "host", "version": "1"},
    }
    messages: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": call},
    ]
    async with run_here(network_file(tmp_path), tmp_path) as network:
        me = await network.join("me")
        config = await printed_config(tmp_path, "claude", "--address", network.url)
        server = config["mcpServers"]["hubbub"]
        host = await asyncio.create_subprocess_exec(
            server["command"], *server["args"], env=environment(tmp_path),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert host.stdin is not None
        for message in messages:
            host.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        try:
            assert (await me.hears("claude")).text == "well done ?"
        finally:
            host.stdin.close()
            await host.wait()


@pytest.mark.npm
@pytest.mark.skipif(OPENCODE is None, reason=MISSING)
@pytest.mark.behaviour("I-13")
async def test_opencode_waits_for_a_message_and_answers_it(tmp_path: Path) -> None:
    wait, send = "hubbub_wait_for_messages", "hubbub_send_text_message"
    script = Script(
        rules=[
            ScriptRule(
                when=When.model_validate({"system": "title generator"}),
                answer=ScriptedAnswer(text="x"),
            ),
            ScriptRule(
                when=When(step=1, tools=[wait, send]),
                answer=ScriptedAnswer(calls=[ScriptedCall(tool=wait, arguments={"timeout_s": 50})]),
            ),
            ScriptRule(
                when=When.model_validate({"step": 2, "tool_result": "hello opencode"}),
                answer=ScriptedAnswer(
                    calls=[ScriptedCall(tool=send, arguments={"text": "hello me"})]
                ),
            ),
            ScriptRule(when=When(step=3), answer=ScriptedAnswer(text="I have answered.")),
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
        config = await printed_config(tmp_path, "opencode", "--address", network.url)
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": model.base_url, "apiKey": "scripted"},
            "models": {"scripted": {}},
        }
        config |= {"model": "team/scripted", "small_model": "team/scripted", "share": "disabled"}
        config |= {"provider": {"team": provider}, "autoupdate": False}
        (workspace / "opencode.json").write_text(json.dumps(config))
        process = await asyncio.create_subprocess_exec(
            str(OPENCODE), "run", "Answer all messages.",
            cwd=workspace, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            env={"HOME": str(home), "PATH": os.environ["PATH"]},
        )  # fmt: skip
        try:
            await all_present(network.url, "opencode")
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


# Over HTTP -------------------------------------------------------------------------------------

TOKEN = "hub_of_claude"
OVER_HTTP = """
network: {name: http, mcp: true, store: "sqlite:network.db"}
humans: {me: {roles: [owner]}}
"""


@asynccontextmanager
async def over_http(folder: Path) -> AsyncIterator[tuple[Person, str]]:
    """A person in a network with tokens, and the MCP address of `claude`."""
    path = folder / "http.yaml"
    path.write_text(OVER_HTTP)
    digest = hashlib.sha256(TOKEN.encode()).hexdigest()
    await add_token_offline(f"sqlite:{folder / 'network.db'}", digest, "claude")
    async with run_here(path, folder) as network:
        yield await network.join("me"), f"{network.url.replace('ws:', 'http:')}/mcp/claude"


@asynccontextmanager
async def connected(url: str, mode: str) -> AsyncIterator[Any]:
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    async with create_mcp_http_client({"Authorization": f"Bearer {TOKEN}"}) as http:
        transport = streamable_http_client(url, http_client=http)
        async with mcp.Client(transport, mode=mode) as client:
            yield client


@pytest.mark.behaviour("I-14")
async def test_a_host_joins_over_http_with_either_protocol_version(tmp_path: Path) -> None:
    async with over_http(tmp_path) as (me, url):
        for mode, version in {"legacy": "2025-11-25", "auto": "2026-07-28"}.items():
            async with connected(url, mode) as client:
                assert client.protocol_version == version
                await me.tells("claude", f"by {version}?")
                received = (await client.call_tool("wait_for_messages", {})).structured_content
                assert [m["content"] for m in received["messages"]] == [f"by {version}?"]
                await client.call_tool("ack", {"cursor": received["cursor"]})
                await client.call_tool("send_text_message", {"text": "yes"})
                assert (await me.hears("claude")).text == "yes"
                large = await client.call_tool("send_text_message", {"text": "x" * 1_000_000})
                assert large.is_error
                assert "too_large" in large.content[0].text


@pytest.mark.behaviour("I-14")
async def test_the_mcp_endpoint_refuses_invalid_requests_and_leaves_other_paths_alone(
    tmp_path: Path,
) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    good = {"Authorization": f"Bearer {TOKEN}"}
    async with over_http(tmp_path) as (me, url), httpx2.AsyncClient() as http:
        root = url.removesuffix("/mcp/claude")
        accept = {"accept": "application/json, text/event-stream"}
        for address, headers, status in (
            (url, {}, 401),
            (url, {"Authorization": "Bearer of-another"}, 401),
            (f"{root}/mcp/me", good, 401),
            (f"{root}/mcp", good, 404),
            (f"{root}/mcp/a.b", good, 404),
            (url, {**good, "Origin": "https://evil.example"}, 403),
            (url, {**good, "Host": "evil.example"}, 403),
            (url, {**good, "mcp-session-id": "0" * 32}, 404),
        ):
            answer = await http.post(address, json=message, headers={**accept, **headers})
            assert answer.status_code == status, (address, headers, answer.text)
        assert (await http.get(f"{root}/healthz")).text == "ok\n"
        assert (await http.get(f"{root}/mcpx")).status_code == 404
        assert (await http.post(f"{root}/")).status_code >= 400
        reader, writer = await asyncio.open_connection(*root.removeprefix("http://").split(":"))
        writer.write(b"POST /mcp/claude HTTP/1.1\r\nnonsense\r\n\r\n")
        assert b" 400 " in await reader.readline()
        writer.close()
        await writer.wait_closed()
        async with connected(url, "auto") as client:
            await me.tells("claude", "still there?")
            received = (await client.call_tool("wait_for_messages", {})).structured_content
            assert received["messages"][0]["content"] == "still there?"


SCENARIOS = (
    "server-initialize",
    "server-session-lifecycle",
    "ping",
    "tools-list",
    "resources-list",
    "sep-2164-resource-not-found",
    "dns-rebinding-protection",
    "http-header-validation",
    "server-sse-multiple-streams",
)
"""The scenarios that need no tools of the suite's own."""


@pytest.mark.npm
@pytest.mark.skipif(command() is None, reason=NO_SUITE)
@pytest.mark.behaviour("I-14")
async def test_the_mcp_conformance_suite_passes(tmp_path: Path) -> None:
    path = tmp_path / "http.yaml"
    path.write_text(OVER_HTTP.replace("mcp: true", "auth: open, mcp: true"))
    async with run_here(path, tmp_path) as network:
        url = f"{network.url.replace('ws:', 'http:')}/mcp/claude"
        for scenario in SCENARIOS:
            process = await asyncio.create_subprocess_exec(
                *(command() or ()), "server", "--url", url, "--scenario", scenario,
                stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, cwd=tmp_path,
            )  # fmt: skip
            out, _ = await process.communicate()
            assert process.returncode == 0, out.decode()
            assert " 0 failed, 0 warnings" in out.decode(), out.decode()


@pytest.mark.npm
@pytest.mark.skipif(not INSPECTOR.there(), reason=INSPECTOR.missing)
@pytest.mark.behaviour("I-12", "I-14")
async def test_the_mcp_inspector_lists_tools_and_resources_and_calls_a_tool(
    tmp_path: Path,
) -> None:
    async with over_http(tmp_path) as (me, url):

        async def inspect(*words: str) -> Any:
            process = await asyncio.create_subprocess_exec(
                str(INSPECTOR.node), str(INSPECTOR.modules / ".bin" / "mcp-inspector"), "--cli",
                url, "--transport", "http", "--header", f"Authorization: Bearer {TOKEN}", *words,
                stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, cwd=tmp_path,
                stdin=asyncio.subprocess.DEVNULL,
            )  # fmt: skip
            out, err = await process.communicate()
            assert process.returncode == 0, err.decode()
            return json.loads(out)

        tools = await inspect("--method", "tools/list")
        assert {"wait_for_messages", "send_text_message"} <= {t["name"] for t in tools["tools"]}
        listed = await inspect("--method", "resources/list")
        assert "hubbub://inbox" in {each["uri"] for each in listed["resources"]}
        call = ("--method", "tools/call", "--tool-name", "send_text_message")
        await inspect(*call, "--tool-arg", "to=me", "--tool-arg", "text=hello")
        assert (await me.hears("claude")).text == "hello"
