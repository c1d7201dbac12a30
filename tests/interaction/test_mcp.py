"""MCP servers of an agent, real ones: their tools, their odd ones, their deaths, their return."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from pydantic import JsonValue
from structlog.testing import capture_logs

from hubbub.agents.tools.base import CallSite, Tool, ToolFailed
from hubbub.agents.tools.call_runner import ToolPolicy
from hubbub.agents.tools.mcp.servers import McpServers
from hubbub.agents.tools.policy import ToolOverrides
from hubbub.agents.tools.toolbox import Toolbox
from hubbub.config.tooling import McpServerConfig
from tests.interaction import mcp_server, raw_mcp_server
from tests.interaction.peers import soon
from tests.unit.agents.calling import call, failed, text

pytestmark = pytest.mark.slow

SITE = CallSite("bot-m1", 1, 0)
OBJECT: JsonValue = {"type": "object", "properties": {}}
ALL = {"add", "paint", "fail", "die", "hang", "many", "picture", "linked", "nothing"}


class Gate:
    """Pauses that end when a test says so."""

    def __init__(self) -> None:
        self.asked: list[float] = []
        self.waiting = asyncio.Event()
        self.open = asyncio.Semaphore(0)

    async def __call__(self, seconds: float) -> None:
        self.asked.append(seconds)
        self.waiting.set()
        await self.open.acquire()

    async def reached(self) -> None:
        """Somebody waits."""
        async with soon():
            await self.waiting.wait()
        self.waiting.clear()


def program(*arguments: str, timeout: float = 30, **more: object) -> McpServerConfig:
    """The test server as a child process."""
    command = [sys.executable, str(Path(mcp_server.__file__)), *arguments]
    return McpServerConfig.model_validate({"command": command, "timeout": timeout, **more})


def raw(*tools: JsonValue, **script: JsonValue) -> McpServerConfig:
    """A server with these tools, however odd."""
    said = json.dumps({"tools": list(tools), **script})
    command = [sys.executable, str(Path(raw_mcp_server.__file__)), said]
    return McpServerConfig(command=command, timeout=30)


def offered(name: JsonValue, schema: JsonValue = OBJECT, **more: JsonValue) -> JsonValue:
    return {"name": name, "inputSchema": schema, **more}


@asynccontextmanager
async def started(
    folder: Path, gate: Gate | None = None, doubt_s: float = 30, **servers: Any
) -> AsyncIterator[McpServers]:
    made = McpServers(servers, folder, pause=gate or Gate(), doubt_s=doubt_s)
    async with asyncio.timeout(60), made:
        yield made


@asynccontextmanager
async def website(port: int = 0) -> AsyncIterator[McpServerConfig]:
    """The test server over HTTP, at a port of this machine."""
    with closing(socket.create_server(("127.0.0.1", port))) as listener:
        app = mcp_server.made().streamable_http_app()
        config = uvicorn.Config(app, log_level="critical", ws="none", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        task = asyncio.create_task(server.serve(sockets=[listener]))
        port = listener.getsockname()[1]
        yield McpServerConfig(url=f"http://127.0.0.1:{port}/mcp", timeout=5)
        server.should_exit = server.force_exit = True
        await task


def names(servers: McpServers) -> set[str]:
    return {tool.name for tool in servers.tools()}


def tool_of(servers: McpServers, name: str) -> Tool:
    return next(tool for tool in servers.tools() if tool.name == name)


async def until(condition: Callable[[], bool]) -> None:
    """What another process does has no event here."""
    async with soon():
        while not condition():  # noqa: ASYNC110 - see above
            await asyncio.sleep(0.01)


async def back(servers: McpServers, name: str) -> None:
    await until(lambda: name in names(servers))


async def gone(servers: McpServers, name: str) -> str:
    await until(lambda: name in servers.absences())
    return servers.absences()[name]


def runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def pid_in(folder: Path) -> int:
    return int((folder / "pid.txt").read_text().split()[0])


class TestTools:
    @pytest.mark.behaviour("K-12")
    async def test_a_programs_tools_have_its_prefix_its_hints_and_their_results_are_text(
        self, tmp_path: Path
    ) -> None:
        async with started(tmp_path, shop=program()) as servers:
            assert names(servers) == {f"shop_{name}" for name in ALL}
            assert servers.absences() == {}
            add = tool_of(servers, "shop_add")
            assert add.spec.description == "Add two numbers."
            assert add.spec.parameters["properties"] == {
                "a": {"type": "integer"},
                "b": {"type": "integer", "default": 2, "description": "what to add"},
            }
            kinds = {t.name: (t.permission, t.idempotent) for t in servers.tools()}
            assert kinds["shop_add"] == ("read", True)
            assert kinds["shop_paint"] == ("write", True)
            assert kinds["shop_many"] == ("write", False), "without a hint it may do anything"
            box = Toolbox([], ToolPolicy(mode="read_only"), source=servers)
            assert box.names == ("shop_add", "finish")
            results: list[tuple[str, dict[str, JsonValue], str]] = [
                ("add", {"a": 40}, "42"),
                ("many", {"n": 2}, "record 0\nrecord 1"),
                ("picture", {}, "[image, image/png, 3 bytes: cannot be shown here]"),
                ("linked", {}, "[resource a: file:///a]\nthe text"),
                ("nothing", {}, '{"result": null}'),
            ]
            for name, arguments, said in results:
                assert await tool_of(servers, f"shop_{name}").run(arguments, SITE) == said, name

            # Calls go through the toolbox like all others.
            box = Toolbox([], ToolPolicy(budget=10), source=servers)
            wrong = await failed(box, "shop_paint", colour="gren")
            assert "did you mean green?" in str(wrong["message"])
            assert await text(box, "shop_add", a="1") == "3"
            assert "characters)" in await text(box, "shop_many", n=50)
            told = await failed(box, "shop_fail")
            assert (told["error"], told["retry"]) == ("tool_failed", False)

    async def test_the_operator_chooses_among_them_and_own_tools_go_first(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SECRET", "s3cret")
        shop = program("--pid", "pid.txt", env={"SAID": "yes"}, tools=["add", "missing"])
        async with started(tmp_path, shop=shop) as servers:
            assert names(servers) == {"shop_add"}
            box = Toolbox([tool_of(servers, "shop_add")], source=servers)
            assert box.names == ("shop_add", "finish")
        said = (tmp_path / "pid.txt").read_text().splitlines()[1]
        assert said == "None yes", "its environment is its own, and none of the agent's"


class TestFailures:
    @pytest.mark.behaviour("K-13")
    async def test_those_that_do_not_start_leave_the_others_alone(self, tmp_path: Path) -> None:
        gate = Gate()
        bad = {
            "missing": (McpServerConfig(command=["/no/such/program"]), "FileNotFoundError"),
            "no_server": (McpServerConfig(command=[sys.executable, "-c", "print('hello')"]), ""),
            "no_website": (McpServerConfig(url="http://127.0.0.1:9/mcp"), "ConnectError"),
            "mute": (program("--mute", timeout=1), "it did not answer in time"),
        }
        configs: dict[str, Any] = {name: config for name, (config, _) in bad.items()}
        async with started(tmp_path, gate, shop=program(), **configs) as servers:
            assert names(servers) == {f"shop_{name}" for name in ALL}
            for name, (_, why) in bad.items():
                assert why in servers.absences()[name], name
            await until(lambda: gate.asked == [1.0] * len(bad))

    @pytest.mark.behaviour("K-13")
    async def test_one_that_dies_answers_the_call_in_flight_and_comes_back(
        self, tmp_path: Path
    ) -> None:
        gate = Gate()
        async with started(tmp_path, gate, shop=program()) as servers:
            turn = Toolbox([], source=servers).for_turn()
            assert turn.notes() == ()
            told = await failed(turn, "shop_die")
            assert told["error"] == "tool_absent"
            assert "ended during the call" in str(told["message"])
            assert await gone(servers, "shop") == "it has ended"
            assert turn.notes() == ("the tools of shop are absent: it has ended",)
            assert turn.notes() == ()
            assert [spec.name for spec in turn.described(())] == ["finish"]
            later = await failed(turn, "shop_add", a=1)
            assert later["error"] == "tool_absent"
            assert turn.for_turn().names == ("finish",)
            await gate.reached()
            gate.open.release()
            await back(servers, "shop_add")
            assert await text(turn.for_turn(), "shop_add", a=1) == "3"

    @pytest.mark.behaviour("K-13")
    async def test_one_that_hangs_is_started_anew(self, tmp_path: Path) -> None:
        gate = Gate()
        quick = ToolPolicy(overrides={"shop_hang": ToolOverrides(timeout=0.1)})
        shop = program("--pid", "pid.txt")
        async with started(tmp_path, gate, doubt_s=0.1, shop=shop) as servers:
            first = pid_in(tmp_path)
            told = await failed(Toolbox([], quick, source=servers), "shop_hang")
            assert told["error"] == "timeout"
            assert await gone(servers, "shop")
            await gate.reached()
            assert not runs(first)
            gate.open.release()
            await back(servers, "shop_add")
            assert await tool_of(servers, "shop_add").run({"a": 1}, SITE) == "3"

    @pytest.mark.behaviour("K-12", "K-13")
    async def test_a_website_survives_a_call_that_is_given_up_and_may_go_away_and_return(
        self, tmp_path: Path
    ) -> None:
        gate = Gate()
        async with website() as web:
            servers = McpServers({"web": web}, tmp_path, pause=gate)
            await servers.__aenter__()
            assert names(servers) == {f"web_{name}" for name in ALL}
            add = tool_of(servers, "web_add")
            given_up = asyncio.create_task(add.run({"a": 1}, SITE))
            await asyncio.sleep(0)
            given_up.cancel()
            with pytest.raises(asyncio.CancelledError):
                await given_up
            assert await add.run({"a": 1}, SITE) == "3"
            assert servers.absences() == {}
        try:
            with pytest.raises(ToolFailed):
                await add.run({"a": 1}, SITE)
            assert await gone(servers, "web")
            async with website(int(str(web.url).rsplit(":", 1)[1].partition("/")[0])):
                await gate.reached()
                gate.open.release()
                await back(servers, "web_add")
                assert await tool_of(servers, "web_add").run({"a": 1}, SITE) == "3"
        finally:
            await servers.__aexit__(None, None, None)

    async def test_pauses_grow_while_it_stays_away(self, tmp_path: Path) -> None:
        gate = Gate()
        missing = McpServerConfig(command=["/no/such/program"])
        async with started(tmp_path, gate, bad=missing):
            for _ in range(8):
                await gate.reached()
                gate.open.release()
            assert gate.asked[:8] == [1, 2, 4, 8, 16, 32, 60, 60]


class TestEnding:
    @pytest.mark.behaviour("K-14")
    async def test_nothing_is_left_when_the_agent_ends_though_a_call_hangs(
        self, tmp_path: Path
    ) -> None:
        async with started(tmp_path, shop=program("--pid", "pid.txt")) as servers:
            pid = pid_in(tmp_path)
            assert runs(pid)
            hanging = asyncio.create_task(call(Toolbox([], source=servers), "shop_hang"))
            await asyncio.sleep(0)
        assert not runs(pid)
        async with soon():
            assert (await hanging).error == "tool_absent"

    @pytest.mark.behaviour("K-14")
    async def test_nor_when_it_ends_while_a_server_is_still_starting(self, tmp_path: Path) -> None:
        mute = program("--mute", "--pid", "pid.txt")
        task = asyncio.create_task(started(tmp_path, mute=mute).__aenter__())
        await until(lambda: (tmp_path / "pid.txt").exists() and bool(_read(tmp_path)))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not runs(pid_in(tmp_path))

    @pytest.mark.behaviour("K-14")
    async def test_nor_when_it_ends_while_a_server_is_being_ended(self, tmp_path: Path) -> None:
        slow = McpServerConfig(command=[sys.executable, "-c", SLOW_TO_END])
        task = asyncio.create_task(started(tmp_path, slow=slow).__aenter__())
        await until(lambda: (tmp_path / "pid.txt").exists() and bool(_read(tmp_path)))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not runs(pid_in(tmp_path))


SLOW_TO_END = """
import os, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.close(1)
sys.stdin.read()
with open("pid.txt", "w") as file:
    file.write(str(os.getpid()))
signal.pause()
"""
"""Breaks off, hears that it should end, says so in a file, and has to be killed."""


def _read(folder: Path) -> str:
    return (folder / "pid.txt").read_text()


# Odd tools and odd answers ------------------------------------------------------------------------


@asynccontextmanager
async def heard(
    folder: Path, **servers: Any
) -> AsyncIterator[tuple[McpServers, dict[tuple[str, str], str]]]:
    """Servers, and why tools of theirs were left out, by server and tool."""
    with capture_logs() as records:
        async with started(folder, **servers) as made:
            made.tools()
            left_out = [r for r in records if r["event"] == "MCP tool skipped"]
            yield made, {(r["server"], r["tool"]): r["reason"] for r in left_out}


def nested(levels: int) -> JsonValue:
    schema: JsonValue = {"type": "object"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


STRIN: JsonValue = {"type": "object", "properties": {"a": {"type": "strin"}}}
UNUSABLE: list[tuple[JsonValue, str, str]] = [
    (offered("text", {"type": "string"}), "text", "inputSchema.type"),
    (offered("empty", {}), "empty", "inputSchema.type"),
    (offered("list", {"type": "object", "properties": [1]}), "list", "properties"),
    (offered("deep", nested(60)), "deep", "nested too deep"),
    (offered("needs", {"type": "object", "required": "a"}), "needs", "required"),
    (offered(5), "5", "name"),
    (offered("noted", OBJECT, annotations=[]), "noted", "annotations"),
    ({"description": "x"}, "?", "name"),
    (offered("strin", STRIN), "shop_strin", "not a JSON Schema"),
]


@pytest.mark.behaviour("K-12")
class TestOddTools:
    async def test_unusable_ones_are_left_out_with_a_reason_and_the_others_are_there(
        self, tmp_path: Path
    ) -> None:
        shop = raw(offered("ok"), *(tool for tool, _, _ in UNUSABLE), offered("too"))
        none = raw(offered("ok"), "bad")
        async with heard(tmp_path, shop=shop, other=none) as (servers, reasons):
            assert servers.absences() == {}
            assert names(servers) == {"shop_ok", "shop_too", "other_ok"}
            assert await tool_of(servers, "shop_ok").run({}, SITE) == "ok"
            for _, name, said in UNUSABLE:
                assert said in reasons["shop", name], name
                assert "\n" not in reasons["shop", name], name
            assert "dictionary" in reasons["other", "?"]
            assert len(reasons) == len(UNUSABLE) + 1

    async def test_a_listing_that_is_none_makes_the_server_absent_for_a_short_reason(
        self, tmp_path: Path
    ) -> None:
        command = [sys.executable, str(Path(raw_mcp_server.__file__)), '{"tools": {"a": 1}}']
        said = McpServerConfig(command=command, timeout=30)
        async with started(tmp_path, Gate(), shop=said) as servers:
            why = servers.absences()["shop"]
            assert "tools" in why
            assert "\n" not in why
            assert len(why) < 400

    async def test_names_that_become_the_same_are_told_apart_whatever_their_order(
        self, tmp_path: Path
    ) -> None:
        both: dict[str, Any] = {"one": raw(offered("a b"), offered("a_b"), offered("a.b"))}
        both["two"] = raw(offered("a.b"), offered("a_b"), offered("a b"))
        async with heard(tmp_path, **both) as (servers, _):
            made = names(servers)
            assert len(made) == 6
            said = {name: await tool_of(servers, name).run({}, SITE) for name in made}
        assert said["one_a_b"] == "a_b"
        one = {name[4:]: text for name, text in said.items() if name.startswith("one_")}
        assert set(one.values()) == {"a b", "a_b", "a.b"}
        assert one == {name[4:]: text for name, text in said.items() if name.startswith("two_")}

    async def test_of_two_with_one_name_it_is_said_which_goes_first(self, tmp_path: Path) -> None:
        shops: dict[str, Any] = {
            "shop": raw(offered("a"), offered("a")), "a": raw(offered("b_c")),
            "a_b": raw(offered("c")),
        }  # fmt: skip
        async with heard(tmp_path, **shops) as (servers, reasons):
            assert names(servers) == {"shop_a", "a_b_c"}
            assert "two tools" in reasons["shop", "shop_a"]
            assert await tool_of(servers, "a_b_c").run({}, SITE) == "b_c"
            assert ("a_b", "a_b_c") in reasons

    async def test_the_servers_own_words_are_told(self, tmp_path: Path) -> None:
        till = "the till is broken"
        shops: dict[str, Any] = {
            f"shop{-code}": raw(offered("buy"), error={"code": code, "message": till})
            for code in (-32000, -32603)
        }
        async with started(tmp_path, fine=raw(offered("buy")), **shops) as servers:
            box = Toolbox([], source=servers)
            for name in (*shops, *shops):
                told = await failed(box, f"{name}_buy")
                assert (told["error"], told["message"]) == ("tool_failed", till)
            assert await text(box, "fine_buy") == "buy"
            assert servers.absences() == {}
