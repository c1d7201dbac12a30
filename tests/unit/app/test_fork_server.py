"""Agents are forks of a process that has loaded their code, and supervised like any other."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hubbub.app.fork_server import ForkServer, available, serve
from hubbub.app.lifecycle import AgentDied
from hubbub.app.supervisor import Supervisor, output_pipe
from hubbub.app.units import Unit
from tests.unit.app.seen import WITHIN_S, Seen
from tests.unit.app.test_supervisor import is_alive, running

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not available(), reason="only on Linux")]


def program(folder: Path, code: str, **environment: str) -> Unit:
    """An agent `bot` that is this Python program and needs no network."""
    agents = {"bot": {"kind": "program", "command": [sys.executable, "-uc", code]}}
    path = folder / "hubbub.yaml"
    path.write_text(json.dumps({"network": {"name": "test"}, "agents": agents}))
    arguments = (str(path), "bot")
    command = (sys.executable, "-m", "hubbub.cli.agent_process", *arguments)
    return Unit(("bot",), command, environment, arguments)


@asynccontextmanager
async def forked(unit: Unit) -> AsyncIterator[tuple[Seen, ForkServer]]:
    seen = Seen()

    async def no_delay(seconds: float) -> None:
        await asyncio.sleep(0)

    async with (
        ForkServer(("hubbub.app.agents",)) as forks,
        running(Supervisor([unit], seen, sleep=no_delay, forks=forks)),
    ):
        yield seen, forks


def status(pid: int) -> dict[str, str]:
    """What the system says of a process, also of one that has ended and is not reaped yet."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}


def parent(pid: int) -> int:
    return int(status(pid)["PPid"])


WAIT = "import time\nprint('up')\ntime.sleep(60)"


@pytest.mark.behaviour("L-4")
async def test_a_fork_has_a_session_an_environment_and_outputs_of_its_own(tmp_path: Path) -> None:
    code = (
        "import os, sys, time\nprint(os.environ['SECRET'], os.getsid(0) == os.getpid())\n"
        "print(sorted(os.listdir('/proc/self/fd'))[:4], sys.stdin.read() == '')\n"
        "print('two', file=sys.stderr)\ntime.sleep(60)"
    )
    async with forked(program(tmp_path, code, SECRET="s3cret")) as (seen, forks):
        await seen.until(lambda _: len(seen.lines()) == 2 and bool(seen.lines("stderr")))
        (pid,) = seen.pids()
        assert parent(pid) == forks.pid
    assert seen.lines() == ["s3cret True", "['0', '1', '2', '3'] True"], "3 lists this folder"
    assert seen.lines("stderr") == ["two"]
    assert not is_alive(pid)


async def test_a_fork_that_exits_or_is_killed_is_started_again(tmp_path: Path) -> None:
    async with forked(program(tmp_path, "print('hi')\nraise SystemExit(7)")) as (seen, _):
        await seen.until(lambda _: len(seen.pids()) == 3)
    assert seen.lines()[:2] == ["hi", "hi"]
    assert [e.code for e in seen.all if isinstance(e, AgentDied)][:2] == [7, 7]
    async with forked(program(tmp_path, WAIT)) as (seen, _):
        await seen.until(lambda _: seen.lines() == ["up"])
        os.kill(seen.pids()[0], signal.SIGKILL)
        await seen.until(lambda _: len(seen.lines()) == 2)
    assert [e.code for e in seen.all if isinstance(e, AgentDied)] == [-signal.SIGKILL]


async def test_when_the_fork_server_is_killed_its_agents_start_again_without_it(
    tmp_path: Path,
) -> None:
    async with forked(program(tmp_path, WAIT)) as (seen, forks):
        await seen.until(lambda _: seen.lines() == ["up"])
        os.kill(forks.pid, signal.SIGKILL)
        await seen.until(lambda _: len(seen.lines()) == 2)
        first, second = seen.pids()
        assert not is_alive(first) or status(first)["State"].startswith("Z"), (
            "an orphan is reaped later"
        )
        assert parent(second) == os.getpid()
    assert [e.code for e in seen.all if isinstance(e, AgentDied)] == [-signal.SIGKILL]
    assert not is_alive(second)


async def test_a_fork_that_nobody_waits_for_any_more_is_ended(tmp_path: Path) -> None:
    unit = program(tmp_path, WAIT)
    async with ForkServer(("hubbub.app.agents",)) as forks, output_pipe() as out:
        lifeline, held = os.pipe()
        start = asyncio.create_task(
            forks.start(unit.arguments, {}, stdout=out.fd, stderr=out.fd, lifeline=lifeline)
        )
        await asyncio.sleep(0)  # it has sent its request
        start.cancel()
        out.handed_over()
        async with asyncio.timeout(WITHIN_S):
            await out.reader.read()  # until the fork has ended
        os.close(lifeline)
        os.close(held)


def test_a_fork_that_the_system_refuses_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise OSError(errno.EAGAIN, "too many processes")

    monkeypatch.setattr("os.fork", refuse)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours:
        socket.send_fds(ours, [b"{}"], [0, 1, 2])
        ours.shutdown(socket.SHUT_WR)
        assert serve(theirs) is None
        assert json.loads(ours.recv(100)) == {"error": errno.EAGAIN}
