"""MCP servers of an agent, real ones: their tools, their deaths, their return."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
import uvicorn
from pydantic import JsonValue

from hubbub.agents.tools.base import CallSite, Tool, ToolFailed
from hubbub.agents.tools.conduct import Conduct
from hubbub.agents.tools.mcp.servers import McpServers
from hubbub.agents.tools.toolbox import Toolbox
from hubbub.agents.tools.tuning import Tuning
from hubbub.config.tooling import McpServerConfig
from tests.interaction import mcp_server
from tests.interaction.peers import soon
from tests.unit.agents.calling import call, failed, text

pytestmark = pytest.mark.slow

SITE = CallSite("bot-m1", 1, 0)
PROGRAM = str(Path(mcp_server.__file__))


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
    command = [sys.executable, PROGRAM, *arguments]
    return McpServerConfig.model_validate({"command": command, "timeout": timeout, **more})


@asynccontextmanager
async def started(
    folder: Path, gate: Gate | None = None, doubt_s: float = 30, **servers: McpServerConfig
) -> AsyncIterator[McpServers]:
    made = McpServers(servers, folder, pause=gate or Gate(), doubt_s=doubt_s)
    async with asyncio.timeout(60), made:
        yield made


@asynccontextmanager
async def website(port: int = 0) -> AsyncIterator[int]:
    """The test server over HTTP, at a port of this machine."""
    with closing(socket.create_server(("127.0.0.1", port))) as listener:
        app = mcp_server.made().streamable_http_app()
        config = uvicorn.Config(app, log_level="critical", ws="none", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        task = asyncio.create_task(server.serve(sockets=[listener]))
        yield listener.getsockname()[1]
        server.should_exit = server.force_exit = True
        await task


def names(servers: McpServers) -> set[str]:
    return {tool.name for tool in servers.tools()}


def tool_of(servers: McpServers, name: str) -> Tool:
    return next(tool for tool in servers.tools() if tool.name == name)


async def back(servers: McpServers, name: str) -> None:
    async with soon():
        while name not in names(servers):  # noqa: ASYNC110 - a test has no event for it
            await asyncio.sleep(0.01)


async def gone(servers: McpServers, name: str) -> str:
    async with soon():
        while name not in servers.absences():  # noqa: ASYNC110 - a test has no event for it
            await asyncio.sleep(0.01)
    return servers.absences()[name]


def runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


ALL = {"add", "paint", "fail", "die", "hang", "many", "picture", "linked", "nothing"}


class TestTools:
    @pytest.mark.behaviour("K-12")
    async def test_a_programs_tools_have_its_prefix(self, tmp_path: Path) -> None:
        async with started(tmp_path, shop=program()) as servers:
            assert names(servers) == {f"shop_{name}" for name in ALL}
            assert servers.absences() == {}
            add = tool_of(servers, "shop_add")
            assert add.spec.description == "Add two numbers."
            assert add.spec.parameters["properties"] == {
                "a": {"type": "integer"},
                "b": {"type": "integer", "default": 2, "description": "what to add"},
            }
            assert await add.run({"a": 40}, SITE) == "42"

    @pytest.mark.behaviour("K-12")
    async def test_those_of_a_server_on_the_web_too(self, tmp_path: Path) -> None:
        async with website() as port:
            web = McpServerConfig(url=f"http://127.0.0.1:{port}/mcp", timeout=30)
            async with started(tmp_path, web=web) as servers:
                assert names(servers) == {f"web_{name}" for name in ALL}
                assert await tool_of(servers, "web_add").run({"a": 1, "b": 1}, SITE) == "2"

    async def test_hints_say_what_a_tool_does_and_without_one_it_may_do_anything(
        self, tmp_path: Path
    ) -> None:
        async with started(tmp_path, shop=program()) as servers:
            kinds = {t.name: (t.permission, t.idempotent) for t in servers.tools()}
            assert kinds["shop_add"] == ("read", True)
            assert kinds["shop_paint"] == ("write", True)
            assert kinds["shop_many"] == ("write", False)
            box = Toolbox([], Conduct(mode="read_only"), source=servers)
            assert box.names == ("shop_add", "finish")

    @pytest.mark.parametrize(
        ("name", "arguments", "says"),
        [
            ("many", {"n": 2}, "record 0\nrecord 1"),
            ("picture", {}, "[image, image/png, 3 bytes: cannot be shown here]"),
            ("linked", {}, "[resource a: file:///a]\nthe text"),
            ("nothing", {}, '{"result": null}'),
        ],
    )
    async def test_results_are_text(
        self, tmp_path: Path, name: str, arguments: dict[str, JsonValue], says: str
    ) -> None:
        async with started(tmp_path, shop=program()) as servers:
            assert await tool_of(servers, f"shop_{name}").run(arguments, SITE) == says

    async def test_calls_go_through_the_toolbox_like_all_others(self, tmp_path: Path) -> None:
        async with started(tmp_path, shop=program()) as servers:
            box = Toolbox([], Conduct(budget=10), source=servers)
            wrong = await failed(box, "shop_paint", colour="gren")
            assert "did you mean green?" in str(wrong["message"])
            assert await text(box, "shop_add", a="1") == "3"
            assert "characters)" in await text(box, "shop_many", n=50)
            told = await failed(box, "shop_fail")
            assert (told["error"], told["retry"]) == ("tool_failed", False)

    async def test_the_operator_chooses_among_them(self, tmp_path: Path) -> None:
        shop = program(tools=["add", "missing"])
        async with started(tmp_path, shop=shop) as servers:
            assert names(servers) == {"shop_add"}

    async def test_own_tools_go_before_those_of_the_same_name(self, tmp_path: Path) -> None:
        async with started(tmp_path, shop=program(tools=["add"])) as servers:
            other = tool_of(servers, "shop_add")
            box = Toolbox([other], source=servers)
            assert box.names == ("shop_add", "finish")

    async def test_a_program_gets_its_environment_and_none_of_the_agents(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SECRET", "s3cret")
        shop = program("--pid", "pid.txt", env={"SAID": "yes"})
        async with started(tmp_path, shop=shop):
            assert (tmp_path / "pid.txt").read_text().splitlines()[1] == "None yes"


class TestFailures:
    @pytest.mark.behaviour("K-13")
    @pytest.mark.parametrize(
        ("config", "why"),
        [
            (McpServerConfig(command=["/no/such/program"]), "FileNotFoundError"),
            (McpServerConfig(command=[sys.executable, "-c", "print('hello')"]), ""),
            (McpServerConfig(url="http://127.0.0.1:9/mcp"), "ConnectError"),
            (program("--mute", timeout=1), "it did not answer in time"),
        ],
        ids=["missing", "no server", "no website", "mute"],
    )
    async def test_one_that_does_not_start_leaves_the_others_alone(
        self, tmp_path: Path, config: McpServerConfig, why: str
    ) -> None:
        gate = Gate()
        async with started(tmp_path, gate, bad=config, shop=program()) as servers:
            assert names(servers) == {f"shop_{name}" for name in ALL}
            assert why in servers.absences()["bad"]
            await gate.reached()
            assert gate.asked == [1.0]

    @pytest.mark.behaviour("K-13")
    async def test_one_that_dies_answers_the_call_in_flight_and_comes_back(
        self, tmp_path: Path
    ) -> None:
        gate = Gate()
        async with started(tmp_path, gate, shop=program()) as servers:
            turn = Toolbox([], source=servers).for_turn()
            assert turn.news() == ()
            told = await failed(turn, "shop_die")
            assert told["error"] == "tool_absent"
            assert "ended during the call" in str(told["message"])
            assert await gone(servers, "shop") == "it has ended"
            assert turn.news() == ("the tools of shop are absent: it has ended",)
            assert turn.news() == ()
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
        shop = program("--pid", "pid.txt")
        quick = Conduct(tuning={"shop_hang": Tuning(timeout=0.1)})
        async with started(tmp_path, gate, doubt_s=0.1, shop=shop) as servers:
            first = int((tmp_path / "pid.txt").read_text().split()[0])
            told = await failed(Toolbox([], quick, source=servers), "shop_hang")
            assert told["error"] == "timeout"
            assert await gone(servers, "shop")
            await gate.reached()
            assert not runs(first)
            gate.open.release()
            await back(servers, "shop_add")
            assert await tool_of(servers, "shop_add").run({"a": 1}, SITE) == "3"

    async def test_a_call_that_is_given_up_does_no_harm_to_a_server_that_works(
        self, tmp_path: Path
    ) -> None:
        async with website() as port:
            web = McpServerConfig(url=f"http://127.0.0.1:{port}/mcp", timeout=30)
            async with started(tmp_path, web=web) as servers:
                task = asyncio.create_task(tool_of(servers, "web_add").run({"a": 1}, SITE))
                await asyncio.sleep(0)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert await tool_of(servers, "web_add").run({"a": 1}, SITE) == "3"
                assert servers.absences() == {}

    @pytest.mark.behaviour("K-13")
    async def test_a_website_that_goes_away_and_returns(self, tmp_path: Path) -> None:
        gate = Gate()
        async with website() as port:
            web = McpServerConfig(url=f"http://127.0.0.1:{port}/mcp", timeout=5)
            servers = McpServers({"web": web}, tmp_path, pause=gate)
            await servers.__aenter__()
        try:
            add = tool_of(servers, "web_add")
            with pytest.raises(ToolFailed):
                await add.run({"a": 1}, SITE)
            assert await gone(servers, "web")
            async with website(port):
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
    async def test_nothing_is_left_when_the_agent_ends(self, tmp_path: Path) -> None:
        async with started(tmp_path, shop=program("--pid", "pid.txt")):
            pid = int((tmp_path / "pid.txt").read_text().split()[0])
            assert runs(pid)
        assert not runs(pid)

    @pytest.mark.behaviour("K-14")
    async def test_nor_when_it_ends_while_a_server_is_still_starting(self, tmp_path: Path) -> None:
        mute = program("--mute", "--pid", "pid.txt")
        task = asyncio.create_task(started(tmp_path, mute=mute).__aenter__())
        async with soon():
            while not (tmp_path / "pid.txt").exists():  # noqa: ASYNC110 - no event
                await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        pid = int((tmp_path / "pid.txt").read_text().split()[0])
        assert not runs(pid)

    @pytest.mark.behaviour("K-14")
    async def test_nor_while_a_call_hangs(self, tmp_path: Path) -> None:
        shop = program("--pid", "pid.txt")
        async with started(tmp_path, shop=shop) as servers:
            pid = int((tmp_path / "pid.txt").read_text().split()[0])
            hanging = asyncio.create_task(call(Toolbox([], source=servers), "shop_hang"))
            await asyncio.sleep(0)
        assert not runs(pid)
        async with soon():
            assert (await hanging).error == "tool_absent"
