"""Functions in the sandbox, as real processes: results, limits, isolation and cleanup."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from pydantic import JsonValue

from hubbub.agents.tools.assembly import ToolKit
from hubbub.agents.tools.base import CallSite, Tool, ToolFailed
from hubbub.agents.tools.call_runner import ToolPolicy
from hubbub.agents.tools.function import FunctionTool
from hubbub.agents.tools.sandbox.jail import MACHINES
from hubbub.agents.tools.sandbox.process import layers
from hubbub.agents.tools.toolbox import Toolbox
from hubbub.config.agents import AgentConfig
from hubbub.config.tooling import SandboxLimits
from hubbub.errors import ConfigError
from hubbub.loading import load_attribute
from tests.interaction import meddling, risky
from tests.interaction.peers import soon
from tests.unit.agents.calling import call

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="what it can refuse depends on the system"),
]

SITE = CallSite("bot-m1", 1, 0)


async def result(tool: Tool, **arguments: JsonValue) -> str:
    async with asyncio.timeout(60):
        return await tool.run(arguments, SITE)


async def failure(tool: Tool, **arguments: JsonValue) -> ToolFailed:
    with pytest.raises(ToolFailed) as caught:
        await result(tool, **arguments)
    return caught.value


@pytest.fixture
def port() -> Iterator[int]:
    """A listening port; fails the test if a connection reaches it."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield server.getsockname()[1]
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()


def sandbox_folders() -> set[str]:
    """The folders of sandboxes that exist."""
    return {str(path) for path in Path(tempfile.gettempdir()).glob("hubbub-*")}


async def until_ended(pid: int) -> None:
    """Wait for the end of any process, also of one that is not a child."""
    ended, process = asyncio.Event(), os.pidfd_open(pid)
    loop = asyncio.get_running_loop()
    loop.add_reader(process, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(process)
        os.close(process)


def sandboxes(of: int | None = None) -> set[int]:
    """The ids of the sandbox processes of a process, by default this one."""
    parent_id = of or os.getpid()
    pids = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended meanwhile
            parent = (folder / "stat").read_text().rsplit(")", 1)[1].split()[1]
            command = (folder / "cmdline").read_bytes()
            if int(parent) == parent_id and b"sandbox/child.py" in command:
                pids.add(int(folder.name))
    return pids


async def until_sandboxed(of: int | None = None) -> int:
    """Wait for the sandbox of a process; its id."""
    async with soon():
        while not (pids := sandboxes(of)):  # noqa: ASYNC110 - a process sends no event
            await asyncio.sleep(0.01)
    (pid,) = pids
    return pid


class TestWork:
    async def test_arguments_results_and_errors_are_passed_through(self) -> None:
        answer = await result(risky.mirror, point={"x": 2}, times=2)
        assert json.loads(answer) == [{"x": -2, "y": 0}] * 2
        assert await result(risky.later, text="ä\ud7ff") == "ä\ud7ff", "an async function"
        plain = FunctionTool(risky.plain).sandboxed(SandboxLimits())
        assert await result(plain, word="ho") == "hoho", "a function sandboxed by the operator"
        failed = await failure(risky.sell, item="pie")
        assert (failed.message, failed.error) == ("no pie", "sold_out")
        assert (failed.retry, failed.near) == (True, ("tea",))
        assert "ZeroDivisionError" in (await failure(risky.broken)).message
        assert (await failure(risky.quit_it)).message == "SystemExit: bye"
        gone = "its process ended without an answer (exit code 3)"
        assert (await failure(risky.leave, code=3)).message == gone
        assert (await failure(risky.mirror, point=1)).error == "invalid_arguments"

    async def test_functions_can_use_threads_and_run_concurrently(self) -> None:
        answers = await asyncio.gather(
            *(result(risky.later, text=str(n)) for n in range(2)), result(risky.use_threads)
        )
        assert answers == ["0", "1", "10"]
        assert json.loads(await result(meddling.work)) == {
            "total": 4950,
            "written": "[1, 2]",
            "caught": 2,
            "loop": "awake",
            "across": "across",
            "flags": 0,
        }

    async def test_neighbours_of_a_file_can_be_imported_but_shadow_no_library(
        self, tmp_path: Path
    ) -> None:
        for name in ("calendar", "email", "random", "secrets", "tempfile", "types", "openai"):
            (tmp_path / f"{name}.py").write_text("raise SystemExit('not meant')\n")
        (tmp_path / "helper.py").write_text("YEAR = 2025\n")
        (tmp_path / "mine.py").write_text(
            "import calendar\nfrom helper import YEAR\nfrom hubbub import tool\n\n"
            "@tool(sandbox='process', name='days')\ndef days_of(month: int) -> int:\n"
            "    '''Count the days of a month.'''\n"
            "    return calendar.monthrange(YEAR, month)[1]\n"
        )
        days = load_attribute("mine.py:days_of", tmp_path)
        assert isinstance(days, FunctionTool)
        assert await result(days, month=2) == "28"

    def test_a_function_that_cannot_run_in_another_process_is_refused(self) -> None:
        def inner() -> None:
            """Inside."""

        with pytest.raises(TypeError, match="top level of a file"):
            FunctionTool(inner, sandbox="process")
        with pytest.raises(TypeError, match="cannot take a CancelToken"):
            FunctionTool(risky.wants_token).sandboxed(SandboxLimits())


class TestLimits:
    @pytest.mark.behaviour("K-10")
    @pytest.mark.parametrize(
        ("tool", "message"),
        [
            (risky.eat_memory, "more than 400 MiB of memory"),
            (risky.burn, "more than 1 s of processor time"),
            (risky.write_much, "a file of more than 100000 B"),
            (risky.answer_much, "over 10000 bytes"),
        ],
        ids=["memory", "time", "file", "output"],
    )
    async def test_exceeding_a_limit_ends_the_call(self, tool: Tool, message: str) -> None:
        failed = await failure(tool)
        assert failed.error == "sandbox_limit"
        assert message in failed.message

    @pytest.mark.behaviour("K-10")
    async def test_memory_and_open_files_are_bounded_for_code_that_keeps_trying(self) -> None:
        used = await result(risky.eat_memory_in_pieces)
        assert int(used.removesuffix(" MiB")) < 512
        assert "Too many open files" in (await failure(risky.open_many)).message
        assert await result(risky.print_much) == "printed", "printed output is discarded"

    @pytest.mark.behaviour("K-10", "K-11")
    async def test_a_function_is_killed_at_its_timeout(self) -> None:
        box = Toolbox([risky.hang], ToolPolicy(timeout=1))
        async with soon():
            answer = await call(box, "hang")
        assert answer.error == "timeout"
        assert sandboxes() == set()

    @pytest.mark.behaviour("K-11")
    async def test_cancelling_a_call_kills_its_process(self) -> None:
        task = asyncio.create_task(risky.hang.run({}, SITE))
        await until_sandboxed()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert sandboxes() == set()

    @pytest.mark.behaviour("K-11")
    async def test_the_process_dies_with_the_agent(self, tmp_path: Path) -> None:
        (tmp_path / "agent.py").write_text(
            "import asyncio\nfrom hubbub.agents.tools.base import CallSite\n"
            "from tests.interaction.risky import hang\n"
            "asyncio.run(hang.run({}, CallSite('bot-m1', 1, 0)))\n"
        )
        agent = await asyncio.create_subprocess_exec(
            sys.executable,
            str(tmp_path / "agent.py"),
            env={"PYTHONPATH": os.pathsep.join(sys.path)},
        )
        try:
            ended = asyncio.create_task(until_ended(await until_sandboxed(agent.pid)))
            await asyncio.sleep(0)
            assert not ended.done()
        finally:
            agent.kill()
            await agent.wait()
        async with soon():
            await ended


class TestWalls:
    @pytest.mark.behaviour("K-11")
    async def test_there_is_no_network_even_below_python(self, port: int) -> None:
        for tool in (risky.dial, risky.fetch):
            message = (await failure(tool, port=port)).message
            assert "may not use the network" in message, tool.name
        returned, code = json.loads(await result(risky.dial_by_hand, port=port))
        assert (returned, code in (errno.EPERM, errno.ENETUNREACH)) == (-1, True)

    @pytest.mark.behaviour("K-11")
    async def test_processes_cannot_be_started_or_signalled_even_below_python(self) -> None:
        for tool in (risky.bomb, risky.run_program):
            assert "may not start processes" in (await failure(tool)).message, tool.name
        assert json.loads(await result(risky.bomb_by_hand)) == [-1, errno.EPERM]
        message = (await failure(risky.kill, pid=os.getpid())).message
        assert "may not signal processes" in message
        assert json.loads(await result(risky.kill_by_hand, pid=os.getpid())) == [-1, errno.EPERM]

    @pytest.mark.behaviour("K-11")
    async def test_files_outside_its_folder_cannot_be_changed(self, tmp_path: Path) -> None:
        file = tmp_path / "file.txt"
        file.write_text("yours")
        for tool in (risky.overwrite, risky.remove):
            message = (await failure(tool, path=str(file))).message
            assert "Permission denied" in message, tool.name
        assert file.read_text() == "yours"

    async def test_only_the_configured_paths_can_be_read(self, tmp_path: Path) -> None:
        secret, shared = tmp_path / "secret.txt", tmp_path / "shared"
        shared.mkdir()
        for path in (secret, shared / "page.txt"):
            path.write_text("words")
        tool = FunctionTool(risky.read).sandboxed(SandboxLimits(read=[str(shared)]))
        assert await result(tool, path=str(shared / "page.txt")) == "words"
        for path in (secret, Path("/etc/passwd"), Path.home()):
            message = (await failure(tool, path=str(path))).message
            assert "Permission denied" in message, path
        free = FunctionTool(risky.read).sandboxed(SandboxLimits())
        assert await result(free, path=str(secret)) == "words"
        assert "landlock" in await layers()
        config = AgentConfig.model_validate(
            {"tools": ["tools.py:look"], "sandbox": {"read": ["price"]}}
        )
        (tmp_path / "tools.py").write_text(
            'from hubbub import tool\n\n\n@tool(sandbox="process")\ndef look() -> str:\n'
            '    """Look."""\n    return ""\n'
        )
        with pytest.raises(ConfigError, match=r"sandbox\.read: .*price does not exist"):
            ToolKit(config, "bot", tmp_path)

    @pytest.mark.behaviour("K-11")
    async def test_each_call_has_an_empty_folder_that_is_removed(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SECRET", "s3cret")
        where = json.loads(await result(risky.where))
        assert where["files"] == ["mine.txt"]
        assert set(where["environment"]) <= {"LC_CTYPE"}
        assert (where["isolated"], where["session"]) == (1, True)
        assert json.loads(await result(risky.use_folder)) == ["c"], "the folder is writable"
        deep, locked = await result(meddling.dig, depth=3000), await result(meddling.lock_up)
        assert not {where["folder"], deep, locked} & sandbox_folders()
        assert sandboxes() == set()

    @pytest.mark.behaviour("K-11")
    @pytest.mark.skipif(os.uname().machine not in MACHINES, reason="there is no filter for it")
    async def test_the_agents_process_cannot_be_reached(self, tmp_path: Path) -> None:
        path, file = tmp_path / "socket", tmp_path / "file"
        file.touch()
        with closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as listener:
            listener.bind(str(path))
            listener.setblocking(False)
            arguments: dict[str, JsonValue] = {"path": str(path), "file": str(file)}
            refused = json.loads(await result(meddling.meddle, agent=os.getpid(), **arguments))
            assert len(refused) > 10
            assert set(refused.values()) <= {errno.EPERM, errno.EACCES}, refused
            with pytest.raises(BlockingIOError):
                listener.recv(10)
