"""Functions in the sandbox, with real processes: what they may, what they may not, what is left."""

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
    """A port on which somebody listens; nobody must get through to it."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield server.getsockname()[1]
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()


def left() -> set[str]:
    """The folders of sandboxes that are still there."""
    return {str(path) for path in Path(tempfile.gettempdir()).glob("hubbub-*")}


async def end_of(pid: int) -> None:
    """Wait for the end of a process that need not be a child of this one."""
    ended, process = asyncio.Event(), os.pidfd_open(pid)
    loop = asyncio.get_running_loop()
    loop.add_reader(process, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(process)
        os.close(process)


def children(of: int | None = None) -> set[int]:
    """The sandboxes of a process, of this one if none is named."""
    parent_id = of or os.getpid()
    found = set()
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile
            parent = place.joinpath("stat").read_text().rsplit(")", 1)[1].split()[1]
            if int(parent) == parent_id and b"sandbox/child.py" in (place / "cmdline").read_bytes():
                found.add(int(place.name))
    return found


class TestWork:
    async def test_arguments_results_and_words_of_functions_come_through(self) -> None:
        told = await result(risky.mirror, point={"x": 2}, times=2)
        assert json.loads(told) == [{"x": -2, "y": 0}] * 2
        assert await result(risky.later, text="ä\ud7ff") == "ä\ud7ff", "an async one runs too"
        plain = FunctionTool(risky.plain).sandboxed(SandboxLimits())
        assert await result(plain, word="ho") == "hoho", "and one that the operator confines"
        failed = await failure(risky.sell, item="pie")
        assert (failed.message, failed.error) == ("no pie", "sold_out")
        assert (failed.retry, failed.near) == (True, ("tea",))
        assert "ZeroDivisionError" in (await failure(risky.broken)).message
        assert (await failure(risky.quit_it)).message == "SystemExit: bye"
        gone = "its process ended without an answer (exit code 3)"
        assert (await failure(risky.leave, code=3)).message == gone
        assert (await failure(risky.mirror, point=1)).error == "invalid_arguments"

    async def test_ordinary_functions_run_threads_too_and_several_side_by_side(self) -> None:
        told = await asyncio.gather(
            *(result(risky.later, text=str(n)) for n in range(2)), result(risky.use_threads)
        )
        assert told == ["0", "1", "10"]
        assert json.loads(await result(meddling.work)) == {
            "total": 4950,
            "written": "[1, 2]",
            "caught": 2,
            "loop": "awake",
            "across": "across",
            "flags": 0,
        }

    async def test_a_file_that_is_no_module_finds_its_neighbours_but_they_replace_no_library(
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
        found = load_attribute("mine.py:days_of", tmp_path)
        assert isinstance(found, FunctionTool)
        assert await result(found, month=2) == "28"

    def test_what_no_other_process_can_run_is_refused(self) -> None:
        def inner() -> None:
            """Inside."""

        with pytest.raises(TypeError, match="top level of a file"):
            FunctionTool(inner, sandbox="process")
        with pytest.raises(TypeError, match="cannot take a CancelToken"):
            FunctionTool(risky.wants_token).sandboxed(SandboxLimits())


class TestLimits:
    @pytest.mark.behaviour("K-10")
    @pytest.mark.parametrize(
        ("tool", "says"),
        [
            (risky.eat_memory, "more than 400 MiB of memory"),
            (risky.burn, "more than 1 s of processor time"),
            (risky.write_much, "a file of more than 100000 B"),
            (risky.answer_much, "over 10000 bytes"),
        ],
        ids=["memory", "time", "file", "output"],
    )
    async def test_what_goes_over_a_limit_ends(self, tool: Tool, says: str) -> None:
        failed = await failure(tool)
        assert failed.error == "sandbox_limit"
        assert says in failed.message

    @pytest.mark.behaviour("K-10")
    async def test_memory_and_open_files_are_bounded_also_for_who_does_not_give_up(self) -> None:
        told = await result(risky.eat_memory_in_pieces)
        assert int(told.removesuffix(" MiB")) < 512
        assert "Too many open files" in (await failure(risky.open_many)).message
        assert await result(risky.print_much) == "printed", "which is no answer and fills nothing"

    @pytest.mark.behaviour("K-10", "K-11")
    async def test_at_its_time_it_is_killed(self) -> None:
        box = Toolbox([risky.hang], ToolPolicy(timeout=1))
        async with soon():
            told = await call(box, "hang")
        assert told.error == "timeout"
        assert children() == set()

    @pytest.mark.behaviour("K-11")
    async def test_cancelling_kills_it(self) -> None:
        task = asyncio.create_task(risky.hang.run({}, SITE))
        async with soon():
            while not children():  # noqa: ASYNC110 - a process announces nothing
                await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert children() == set()

    @pytest.mark.behaviour("K-11")
    async def test_it_dies_with_the_agent(self, tmp_path: Path) -> None:
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
            async with asyncio.timeout(60):
                while not children(agent.pid):  # noqa: ASYNC110 - a process announces nothing
                    await asyncio.sleep(0.01)
            (sandbox,) = children(agent.pid)
            ended = asyncio.create_task(end_of(sandbox))
            await asyncio.sleep(0)
            assert not ended.done()
        finally:
            agent.kill()
            await agent.wait()
        async with soon():
            await ended


class TestWalls:
    @pytest.mark.behaviour("K-11")
    async def test_there_is_no_network_not_for_who_goes_round_python_either(
        self, port: int
    ) -> None:
        for tool in (risky.dial, risky.fetch):
            told = (await failure(tool, port=port)).message
            assert "may not use the network" in told, tool.name
        made, code = json.loads(await result(risky.dial_by_hand, port=port))
        assert (made, code in (errno.EPERM, errno.ENETUNREACH)) == (-1, True)

    @pytest.mark.behaviour("K-11")
    async def test_it_starts_and_signals_no_processes_and_the_kernel_refuses_too(self) -> None:
        for tool in (risky.bomb, risky.run_program):
            assert "may not start processes" in (await failure(tool)).message, tool.name
        assert json.loads(await result(risky.bomb_by_hand)) == [-1, errno.EPERM]
        told = (await failure(risky.kill, pid=os.getpid())).message
        assert "may not signal processes" in told
        assert json.loads(await result(risky.kill_by_hand, pid=os.getpid())) == [-1, errno.EPERM]

    @pytest.mark.behaviour("K-11")
    async def test_it_changes_no_file_of_others(self, tmp_path: Path) -> None:
        kept = tmp_path / "kept.txt"
        kept.write_text("yours")
        for tool in (risky.overwrite, risky.remove):
            told = (await failure(tool, path=str(kept))).message
            assert "Permission denied" in told, tool.name
        assert kept.read_text() == "yours"

    async def test_it_reads_only_what_it_is_given_where_that_is_said(self, tmp_path: Path) -> None:
        secret, shared = tmp_path / "secret.txt", tmp_path / "shared"
        shared.mkdir()
        for place in (secret, shared / "page.txt"):
            place.write_text("words")
        tool = FunctionTool(risky.read).sandboxed(SandboxLimits(read=[str(shared)]))
        assert await result(tool, path=str(shared / "page.txt")) == "words"
        for place in (secret, Path("/etc/passwd"), Path.home()):
            told = (await failure(tool, path=str(place))).message
            assert "Permission denied" in told, place
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
    async def test_it_has_an_empty_folder_of_its_own_of_which_nothing_is_left(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SECRET", "s3cret")
        told = json.loads(await result(risky.where))
        assert told["files"] == ["mine.txt"]
        assert set(told["environment"]) <= {"LC_CTYPE"}
        assert (told["isolated"], told["session"]) == (1, True)
        assert json.loads(await result(risky.use_folder)) == ["c"], "there it does as it likes"
        deep, shut = await result(meddling.dig, depth=3000), await result(meddling.lock_up)
        assert not {told["folder"], deep, shut} & left()
        assert children() == set()

    @pytest.mark.behaviour("K-11")
    @pytest.mark.skipif(os.uname().machine not in MACHINES, reason="there is no filter for it")
    async def test_it_does_not_reach_the_agent(self, tmp_path: Path) -> None:
        ear_path, file = tmp_path / "ear", tmp_path / "file"
        file.touch()
        with closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as ear:
            ear.bind(str(ear_path))
            ear.setblocking(False)
            told = await result(
                meddling.meddle, agent=os.getpid(), path=str(ear_path), file=str(file)
            )
            refused = json.loads(told)
            assert len(refused) > 10
            assert set(refused.values()) <= {errno.EPERM, errno.EACCES}, refused
            with pytest.raises(BlockingIOError):
                ear.recv(10)
