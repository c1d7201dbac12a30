"""Functions in the sandbox, with real processes: what they may, what they may not, what is left."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from pydantic import JsonValue

from hubbub.agents.tools.base import CallSite, Tool, ToolFailed
from hubbub.agents.tools.conduct import Conduct
from hubbub.agents.tools.function import FunctionTool
from hubbub.agents.tools.sandbox.limits import Limits
from hubbub.agents.tools.toolbox import Toolbox
from hubbub.loading import load_attribute
from tests.interaction import risky
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


def alive(pid: int) -> bool:
    """Whether it runs; one that has ended may still wait to be noticed."""
    with suppress(OSError):
        return (Path(f"/proc/{pid}") / "stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    return False


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
    async def test_arguments_and_results_come_through(self) -> None:
        told = await result(risky.mirror, point={"x": 2}, times=2)
        assert json.loads(told) == [{"x": -2, "y": 0}] * 2

    async def test_an_async_function_runs_too(self) -> None:
        assert await result(risky.later, text="ä\ud7ff") == "ä\ud7ff"

    async def test_a_plain_function_can_be_confined_by_the_operator(self) -> None:
        tool = FunctionTool(risky.plain).sandboxed(Limits())
        assert await result(tool, word="ho") == "hoho"

    async def test_a_function_of_a_file_that_is_no_module(self, tmp_path: Path) -> None:
        (tmp_path / "helper.py").write_text("GREETING = 'hi'\n")
        (tmp_path / "mine.py").write_text(
            "from helper import GREETING\nfrom hubbub import tool\n\n"
            "@tool(sandbox='process', name='greet')\ndef greet_them() -> str:\n"
            "    '''Greet.'''\n    return GREETING\n"
        )
        found = load_attribute("mine.py:greet_them", tmp_path)
        assert isinstance(found, FunctionTool)
        assert await result(found) == "hi"

    async def test_a_functions_own_words_come_through(self) -> None:
        failed = await failure(risky.sell, item="pie")
        assert (failed.message, failed.error) == ("no pie", "sold_out")
        assert (failed.retry, failed.near) == (True, ("tea",))

    async def test_what_it_raises_is_told(self) -> None:
        assert "ZeroDivisionError" in (await failure(risky.broken)).message
        assert (await failure(risky.quit_it)).message == "SystemExit: bye"

    async def test_a_process_that_just_ends_is_told(self) -> None:
        failed = await failure(risky.leave, code=3)
        assert failed.message == "its process ended without an answer (exit code 3)"

    async def test_wrong_arguments_start_no_process(self) -> None:
        assert (await failure(risky.mirror, point=1)).error == "invalid_arguments"

    async def test_threads_work(self) -> None:
        assert await result(risky.use_threads) == "10"

    async def test_several_run_side_by_side(self) -> None:
        told = await asyncio.gather(*(result(risky.later, text=str(n)) for n in range(3)))
        assert told == ["0", "1", "2"]


class TestDeclaring:
    def test_a_function_that_no_other_process_finds_is_refused(self) -> None:
        def inner() -> None:
            """Inside."""

        with pytest.raises(TypeError, match="top level of a file"):
            FunctionTool(inner, sandbox="process")

    def test_a_token_makes_no_sense_there(self) -> None:
        with pytest.raises(TypeError, match="needs no CancelToken"):
            FunctionTool(risky.wants_token).sandboxed(Limits())


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
    async def test_memory_stays_bounded_also_for_who_does_not_give_up(self) -> None:
        told = await result(risky.eat_memory_in_pieces)
        assert int(told.removesuffix(" MiB")) < 512

    @pytest.mark.behaviour("K-10")
    async def test_open_files_are_bounded(self) -> None:
        assert "Too many open files" in (await failure(risky.open_many)).message

    async def test_what_it_prints_is_no_answer_and_fills_nothing(self) -> None:
        assert await result(risky.print_much) == "printed"

    @pytest.mark.behaviour("K-10", "K-11")
    async def test_at_its_time_it_is_killed(self) -> None:
        box = Toolbox([risky.hang], Conduct(timeout=1))
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
        finally:
            agent.kill()
            await agent.wait()
        async with soon():
            while alive(sandbox):  # noqa: ASYNC110 - it ends a moment later
                await asyncio.sleep(0.01)


class TestWalls:
    @pytest.mark.behaviour("K-11")
    @pytest.mark.parametrize("tool", [risky.dial, risky.fetch], ids=["socket", "http"])
    async def test_there_is_no_network(self, tool: Tool, port: int) -> None:
        assert "may not use the network" in (await failure(tool, port=port)).message

    @pytest.mark.behaviour("K-11")
    async def test_not_for_who_goes_round_python_either(self, port: int) -> None:
        made, code = json.loads(await result(risky.dial_by_hand, port=port))
        assert made == -1
        assert code in (errno.EPERM, errno.ENETUNREACH)

    @pytest.mark.behaviour("K-11")
    @pytest.mark.parametrize("tool", [risky.bomb, risky.run_program], ids=["fork", "program"])
    async def test_it_starts_no_processes(self, tool: Tool) -> None:
        assert "may not start processes" in (await failure(tool)).message

    @pytest.mark.behaviour("K-11")
    @pytest.mark.parametrize(
        "attempt",
        [
            lambda: result(risky.bomb_by_hand),
            lambda: result(risky.kill_by_hand, pid=os.getpid()),
        ],
        ids=["fork", "kill"],
    )
    async def test_the_kernel_refuses_too(self, attempt: Callable[[], object]) -> None:
        told = attempt()
        assert asyncio.iscoroutine(told)
        assert json.loads(await told) == [-1, errno.EPERM]

    async def test_it_cannot_kill_the_agent(self) -> None:
        failed = await failure(risky.kill, pid=os.getpid())
        assert "may not signal processes" in failed.message

    @pytest.mark.behaviour("K-11")
    @pytest.mark.parametrize("tool", [risky.overwrite, risky.remove], ids=["overwrite", "remove"])
    async def test_it_changes_no_file_of_others(self, tool: Tool, tmp_path: Path) -> None:
        kept = tmp_path / "kept.txt"
        kept.write_text("yours")
        assert "Permission denied" in (await failure(tool, path=str(kept))).message
        assert kept.read_text() == "yours"

    async def test_in_its_own_folder_it_may_do_as_it_likes(self) -> None:
        assert json.loads(await result(risky.use_folder)) == ["c"]

    async def test_it_has_an_empty_folder_of_its_own_and_no_environment(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SECRET", "s3cret")
        told = json.loads(await result(risky.where))
        assert told["files"] == ["mine.txt"]
        assert set(told["environment"]) <= {"LC_CTYPE"}
        assert told["isolated"] == 1
        assert told["session"] is True
        assert told["folder"] not in left()
        assert children() == set()
