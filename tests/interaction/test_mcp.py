"""An agent's MCP servers, as real processes: their tools, failures, restarts and end."""

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
ALL = {"add", "paint", "fail", "die", "hang", "many", "picture", "linked", "nothing", "grow"}


class Gate:
    """Pauses that end when the test opens the gate."""

    def __init__(self) -> None:
        self.pauses = asyncio.Queue[float]()
        self.open = asyncio.Semaphore(0)

    async def __call__(self, seconds: float) -> None:
        self.pauses.put_nowait(seconds)
        await self.open.acquire()

    async def reached(self) -> float:
        """Wait for the next pause, which follows each failed or ended connection; its seconds."""
        async with soon():
            return await self.pauses.get()


def program_server(*arguments: str, timeout: float = 30, **more: object) -> McpServerConfig:
    """The test server as a child process."""
    command = [sys.executable, str(Path(mcp_server.__file__)), *arguments]
    return McpServerConfig.model_validate({"command": command, "timeout": timeout, **more})


def raw_server(*tools: JsonValue, **script: JsonValue) -> McpServerConfig:
    """A server that lists these tools, valid or not."""
    listing = json.dumps({"tools": list(tools), **script})
    command = [sys.executable, str(Path(raw_mcp_server.__file__)), listing]
    return McpServerConfig(command=command, timeout=30)


def spec(name: JsonValue, schema: JsonValue = OBJECT, **more: JsonValue) -> JsonValue:
    return {"name": name, "inputSchema": schema, **more}


@asynccontextmanager
async def started(
    folder: Path, gate: Gate | None = None, doubt_s: float = 30, **servers: Any
) -> AsyncIterator[McpServers]:
    running = McpServers(servers, folder, pause=gate or Gate(), doubt_s=doubt_s)
    async with asyncio.timeout(60), running:
        yield running


@asynccontextmanager
async def http_server(port: int = 0) -> AsyncIterator[McpServerConfig]:
    """The test server over HTTP, on a local port."""
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
    """Poll a condition that depends on another process, which sends no event."""
    async with soon():
        while not condition():  # noqa: ASYNC110 - see above
            await asyncio.sleep(0.01)


async def until_available(servers: McpServers, name: str) -> None:
    await until(lambda: name in names(servers))


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def pid_in(folder: Path) -> int:
    return int((folder / "pid.txt").read_text().split()[0])


async def until_pid(folder: Path) -> None:
    """Wait until the server has written its process id."""
    file = folder / "pid.txt"
    await until(lambda: file.exists() and bool(file.read_text()))


class TestTools:
    @pytest.mark.behaviour("K-12")
    async def test_tools_of_a_program_have_a_prefix_and_hints(self, tmp_path: Path) -> None:
        async with started(tmp_path, shop=program_server()) as servers:
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
            assert kinds["shop_many"] == ("write", False), "without hints, a tool counts as a write"
            box = Toolbox([], ToolPolicy(mode="read_only"), source=servers)
            assert box.names == ("shop_add", "finish")
            results: list[tuple[str, dict[str, JsonValue], str]] = [
                ("add", {"a": 40}, "42"),
                ("many", {"n": 2}, "record 0\nrecord 1"),
                ("picture", {}, "[image, image/png, 3 bytes: cannot be shown here]"),
                ("linked", {}, "[resource a: file:///a]\nthe text"),
                ("nothing", {}, '{"result": null}'),
            ]
            for name, arguments, expected in results:
                assert await tool_of(servers, f"shop_{name}").run(arguments, SITE) == expected, name

            # Calls go through the toolbox like those of any other tool.
            box = Toolbox([], ToolPolicy(budget=10), source=servers)
            wrong = await failed(box, "shop_paint", colour="gren")
            assert "did you mean green?" in str(wrong["message"])
            assert await text(box, "shop_add", a="1") == "3"
            assert "characters)" in await text(box, "shop_many", n=50)
            error = await failed(box, "shop_fail")
            assert (error["error"], error["retry"]) == ("tool_failed", False)

    async def test_the_config_selects_tools_and_the_agents_own_take_precedence(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SECRET", "s3cret")
        shop = program_server("--pid", "pid.txt", env={"SAID": "yes"}, tools=["add", "missing"])
        async with started(tmp_path, shop=shop) as servers:
            assert names(servers) == {"shop_add"}
            box = Toolbox([tool_of(servers, "shop_add")], source=servers)
            assert box.names == ("shop_add", "finish")
        environment = (tmp_path / "pid.txt").read_text().splitlines()[1]
        assert environment == "None yes", "it inherits nothing from the agent's environment"


class TestFailures:
    @pytest.mark.behaviour("K-13")
    async def test_servers_that_fail_to_start_do_not_affect_others(self, tmp_path: Path) -> None:
        gate = Gate()
        bad = {
            "missing": (
                McpServerConfig(command=["/no/such/program"]),
                "/no/such/program cannot be started: No such file or directory",
            ),
            "no_server": (McpServerConfig(command=[sys.executable, "-c", "print('hello')"]), ""),
            "no_website": (McpServerConfig(url="http://127.0.0.1:9/mcp"), "ConnectError"),
            "mute": (program_server("--mute", timeout=1), "it did not answer in time"),
        }
        configs: dict[str, Any] = {name: config for name, (config, _) in bad.items()}
        async with started(tmp_path, gate, shop=program_server(), **configs) as servers:
            assert names(servers) == {f"shop_{name}" for name in ALL}
            for name, (_, why) in bad.items():
                assert why in servers.absences()[name], name
            assert [await gate.reached() for _ in bad] == [1.0] * len(bad)

    @pytest.mark.behaviour("K-13")
    async def test_a_server_that_dies_fails_its_call_and_restarts(self, tmp_path: Path) -> None:
        gate = Gate()
        async with started(tmp_path, gate, shop=program_server()) as servers:
            turn = Toolbox([], source=servers).for_turn()
            assert turn.notes() == ()
            error = await failed(turn, "shop_die")
            assert error["error"] == "tool_absent"
            assert "ended during the call" in str(error["message"])
            await gate.reached()
            assert servers.absences() == {"shop": "it has ended"}
            assert turn.notes() == ("the tools of shop are absent: it has ended",)
            assert turn.notes() == ()
            assert [spec.name for spec in turn.described(())] == ["finish"]
            error = await failed(turn, "shop_add", a=1)
            assert error["error"] == "tool_absent"
            assert turn.for_turn().names == ("finish",)
            gate.open.release()
            await until_available(servers, "shop_add")
            assert await text(turn.for_turn(), "shop_add", a=1) == "3"

    @pytest.mark.behaviour("K-13")
    async def test_a_server_that_hangs_is_restarted(self, tmp_path: Path) -> None:
        gate = Gate()
        quick = ToolPolicy(overrides={"shop_hang": ToolOverrides(timeout=0.1)})
        shop = program_server("--pid", "pid.txt")
        async with started(tmp_path, gate, doubt_s=0.1, shop=shop) as servers:
            first = pid_in(tmp_path)
            error = await failed(Toolbox([], quick, source=servers), "shop_hang")
            assert error["error"] == "timeout"
            await gate.reached()
            assert "shop" in servers.absences()
            assert not is_running(first)
            gate.open.release()
            await until_available(servers, "shop_add")
            assert await tool_of(servers, "shop_add").run({"a": 1}, SITE) == "3"

    @pytest.mark.behaviour("K-12", "K-13")
    async def test_an_http_server_survives_cancellation_and_can_return(
        self, tmp_path: Path
    ) -> None:
        gate = Gate()
        async with http_server() as web:
            servers = McpServers({"web": web}, tmp_path, pause=gate)
            await servers.__aenter__()
            assert names(servers) == {f"web_{name}" for name in ALL}
            add = tool_of(servers, "web_add")
            cancelled = asyncio.create_task(add.run({"a": 1}, SITE))
            await asyncio.sleep(0)
            cancelled.cancel()
            with pytest.raises(asyncio.CancelledError):
                await cancelled
            assert await add.run({"a": 1}, SITE) == "3"
            assert servers.absences() == {}
        try:
            with pytest.raises(ToolFailed):
                await add.run({"a": 1}, SITE)
            await gate.reached()
            assert "web" in servers.absences()
            async with http_server(int(str(web.url).rsplit(":", 1)[1].partition("/")[0])):
                gate.open.release()
                await until_available(servers, "web_add")
                assert await tool_of(servers, "web_add").run({"a": 1}, SITE) == "3"
        finally:
            await servers.__aexit__(None, None, None)

    async def test_pauses_between_restarts_grow(self, tmp_path: Path) -> None:
        gate = Gate()
        missing = McpServerConfig(command=["/no/such/program"])
        async with started(tmp_path, gate, bad=missing):
            for seconds in (1, 2, 4, 8, 16, 32, 60, 60):
                assert await gate.reached() == seconds
                gate.open.release()


class TestEnding:
    @pytest.mark.behaviour("K-14")
    async def test_no_process_is_left_after_the_agent_ends_mid_call(self, tmp_path: Path) -> None:
        async with started(tmp_path, shop=program_server("--pid", "pid.txt")) as servers:
            pid = pid_in(tmp_path)
            assert is_running(pid)
            hanging = asyncio.create_task(call(Toolbox([], source=servers), "shop_hang"))
            await asyncio.sleep(0)
        assert not is_running(pid)
        async with soon():
            assert (await hanging).error == "tool_absent"

    @pytest.mark.behaviour("K-14")
    @pytest.mark.parametrize("state", ["starting", "ending"])
    async def test_no_process_is_left_when_an_agent_ends_as_a_server_starts_or_ends(
        self, tmp_path: Path, state: str
    ) -> None:
        server = program_server("--mute", "--pid", "pid.txt")
        if state == "ending":
            server = McpServerConfig(command=[sys.executable, "-c", SLOW_TO_END])
        task = asyncio.create_task(started(tmp_path, server=server).__aenter__())
        await until_pid(tmp_path)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not is_running(pid_in(tmp_path))


SLOW_TO_END = """
import os, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.close(1)
sys.stdin.read()
with open("pid.txt", "w") as file:
    file.write(str(os.getpid()))
signal.pause()
"""
"""Closes its output, writes its id once its input ends, and has to be killed."""


# Invalid tools and answers ------------------------------------------------------------------------


@asynccontextmanager
async def with_skipped(
    folder: Path, **servers: Any
) -> AsyncIterator[tuple[McpServers, dict[tuple[str, str], str]]]:
    """Servers, and the reasons for skipped tools by server and tool."""
    with capture_logs() as records:
        async with started(folder, **servers) as running:
            running.tools()
            skipped = [r for r in records if r["event"] == "MCP tool skipped"]
            yield running, {(r["server"], r["tool"]): r["reason"] for r in skipped}


def nested(levels: int) -> JsonValue:
    schema: JsonValue = {"type": "object"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


MISSPELT: JsonValue = {"type": "object", "properties": {"a": {"type": "strin"}}}
UNUSABLE: list[tuple[JsonValue, str, str]] = [
    (spec("text", {"type": "string"}), "text", "inputSchema.type"),
    (spec("empty", {}), "empty", "inputSchema.type"),
    (spec("list", {"type": "object", "properties": [1]}), "list", "properties"),
    (spec("deep", nested(60)), "deep", "nested too deep"),
    (spec("needs", {"type": "object", "required": "a"}), "needs", "required"),
    (spec(5), "5", "name"),
    (spec("noted", OBJECT, annotations=[]), "noted", "annotations"),
    ({"description": "x"}, "?", "name"),
    (spec("strin", MISSPELT), "shop_strin", "not a JSON Schema"),
]


@pytest.mark.behaviour("K-12")
class TestInvalidTools:
    async def test_unusable_tools_are_skipped_with_a_reason(self, tmp_path: Path) -> None:
        shop = raw_server(spec("ok"), *(tool for tool, _, _ in UNUSABLE), spec("too"))
        none = raw_server(spec("ok"), "bad")
        async with with_skipped(tmp_path, shop=shop, other=none) as (servers, reasons):
            assert servers.absences() == {}
            assert names(servers) == {"shop_ok", "shop_too", "other_ok"}
            assert await tool_of(servers, "shop_ok").run({}, SITE) == "ok"
            for _, name, reason in UNUSABLE:
                assert reason in reasons["shop", name], name
                assert "\n" not in reasons["shop", name], name
            assert "dictionary" in reasons["other", "?"]
            assert len(reasons) == len(UNUSABLE) + 1

    async def test_an_invalid_list_of_tools_makes_the_server_absent(self, tmp_path: Path) -> None:
        command = [sys.executable, str(Path(raw_mcp_server.__file__)), '{"tools": {"a": 1}}']
        shop = McpServerConfig(command=command, timeout=30)
        async with started(tmp_path, Gate(), shop=shop) as servers:
            reason = servers.absences()["shop"]
            assert "tools" in reason
            assert "\n" not in reason
            assert len(reason) < 400

    async def test_after_a_call_that_changes_the_tools_the_new_ones_exist(
        self, tmp_path: Path
    ) -> None:
        shop = raw_server(spec("open"), spec("wait"), then=[spec("buy"), spec("wait")])
        async with started(tmp_path, shop=shop) as servers:
            assert await tool_of(servers, "shop_open").run({}, SITE) == "open"
            assert names(servers) == {"shop_buy", "shop_wait"}
            assert await tool_of(servers, "shop_buy").run({}, SITE) == "buy"

    async def test_changes_that_a_server_reports_only_to_subscribers_are_learned(
        self, tmp_path: Path
    ) -> None:
        async with http_server() as url, started(tmp_path, a=program_server(), b=url) as servers:
            for name in ("a", "b"):
                await tool_of(servers, f"{name}_grow").run({}, SITE)
                await until_available(servers, f"{name}_extra")

    async def test_lines_that_are_no_messages_are_reported_once_and_skipped(
        self, tmp_path: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        shop = raw_server(spec("ok"), prints="ready\n\n{'a': 1}\n[1]\ncafé\n")
        with capture_logs() as logs:
            async with started(tmp_path, shop=shop) as servers:
                assert await tool_of(servers, "shop_ok").run({}, SITE) == "ok"
        assert [log["text"] for log in logs if log["log_level"] == "warning"] == ["ready"]
        assert "Traceback" not in capfd.readouterr().err

    async def test_names_that_collide_stay_distinct_in_any_order(self, tmp_path: Path) -> None:
        both: dict[str, Any] = {"one": raw_server(spec("a b"), spec("a_b"), spec("a.b"))}
        both["two"] = raw_server(spec("a.b"), spec("a_b"), spec("a b"))
        async with with_skipped(tmp_path, **both) as (servers, _):
            results = {name: await tool_of(servers, name).run({}, SITE) for name in names(servers)}
        assert len(results) == 6
        assert results["one_a_b"] == "a_b"
        one = {name[4:]: text for name, text in results.items() if name.startswith("one_")}
        assert set(one.values()) == {"a b", "a_b", "a.b"}
        assert one == {name[4:]: text for name, text in results.items() if name.startswith("two_")}

    async def test_the_second_of_two_tools_with_one_name_is_skipped(self, tmp_path: Path) -> None:
        shops: dict[str, Any] = {
            "shop": raw_server(spec("a"), spec("a")), "a": raw_server(spec("b_c")),
            "a_b": raw_server(spec("c")),
        }  # fmt: skip
        async with with_skipped(tmp_path, **shops) as (servers, reasons):
            assert names(servers) == {"shop_a", "a_b_c"}
            assert "two tools" in reasons["shop", "shop_a"]
            assert await tool_of(servers, "a_b_c").run({}, SITE) == "b_c"
            assert ("a_b", "a_b_c") in reasons

    async def test_error_messages_of_a_server_reach_the_model(self, tmp_path: Path) -> None:
        till = "the till is broken"
        shops: dict[str, Any] = {
            f"shop{-code}": raw_server(spec("buy"), error={"code": code, "message": till})
            for code in (-32000, -32603)
        }
        async with started(tmp_path, fine=raw_server(spec("buy")), **shops) as servers:
            box = Toolbox([], source=servers)
            for name in (*shops, *shops):
                error = await failed(box, f"{name}_buy")
                assert (error["error"], error["message"]) == ("tool_failed", till)
            assert await text(box, "fine_buy") == "buy"
            assert servers.absences() == {}

    async def test_a_call_with_an_invalid_answer_fails_at_once_with_the_reason(
        self, tmp_path: Path
    ) -> None:
        counting: JsonValue = {"type": "object", "required": ["n"]}
        servers: dict[str, Any] = {
            "null": raw_server(spec("buy"), result=None),
            "empty": raw_server(spec("buy"), result={}),
            "count": raw_server(spec("buy", outputSchema=counting), result={"content": []}),
        }
        reasons = {
            "null": "the answer is invalid",
            "empty": "content: Field required",
            "count": "did not return structured content",
        }
        async with started(tmp_path, **servers) as running:
            box = Toolbox([], source=running)
            for name, reason in reasons.items():
                error = await failed(box, f"{name}_buy")
                assert error["error"] == "tool_failed"
                assert reason in str(error["message"]), error
                assert "may have taken effect" in str(error["message"])
                assert "\n" not in str(error["message"])
            assert running.absences() == {}

    async def test_a_text_cut_in_the_middle_of_an_emoji_reaches_the_model(
        self, tmp_path: Path
    ) -> None:
        content: JsonValue = [{"type": "text", "text": "well done \ud83d"}]
        shop = raw_server(spec("buy"), result={"content": content})
        async with started(tmp_path, shop=shop) as running:
            assert await text(Toolbox([], source=running), "shop_buy") == "well done ?"
