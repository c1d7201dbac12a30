"""The supervisor restarts and stops real processes."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from hubbub.app.lifecycle import (
    AgentDied,
    AgentGivenUp,
    AgentOutput,
    AgentStarted,
    LifecycleEvent,
)
from hubbub.app.lifeline import VARIABLE, Lifeline
from hubbub.app.supervisor import RestartRules, Supervisor
from hubbub.app.units import Unit
from tests.unit.app.seen import WITHIN_S, Seen


def python(code: str, *names: str, **environment: str) -> Unit:
    return Unit(names or ("bot",), [sys.executable, "-uc", code], environment)


@asynccontextmanager
async def supervised(
    *units: Unit, rules: RestartRules | None = None, grace_s: float = 5.0
) -> AsyncIterator[Seen]:
    """Keep the units running during the block, with restarts that are not delayed."""
    seen = Seen()

    async def no_delay(seconds: float) -> None:
        await asyncio.sleep(0)

    async with running(Supervisor(units, seen, rules=rules, sleep=no_delay, grace_s=grace_s)):
        yield seen


@asynccontextmanager
async def running(supervisor: Supervisor) -> AsyncIterator[None]:
    task = asyncio.create_task(supervisor.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            task.result()


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A listening socket for asyncio."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        yield listening


WAIT = "import time\nprint('up')\ntime.sleep(60)"

pytestmark = pytest.mark.slow


@pytest.mark.behaviour("L-4")
async def test_process_output_is_reported_line_by_line_with_its_agents_and_stream() -> None:
    code = (
        "import os, sys\nprint(os.environ['SECRET'], os.getsid(0) == os.getpid())\n"
        f"print('two', file=sys.stderr)\n{WAIT}"
    )
    async with supervised(python(code, "a", "b", SECRET="s3cret")) as seen:
        await seen.until(lambda _: len(seen.lines()) == 2 and bool(seen.lines("stderr")))
    assert seen.lines() == ["s3cret True", "up"], "it has its environment, in a session of its own"
    assert seen.lines("stderr") == ["two"]
    assert {e.agents for e in seen.all if isinstance(e, AgentOutput)} == {("a", "b")}


async def test_a_process_that_exits_or_is_killed_is_restarted_and_its_code_reported() -> None:
    async with supervised(python("print('hi')\nraise SystemExit(7)")) as seen:
        await seen.until(lambda _: len(seen.pids()) == 3)
    deaths = [e for e in seen.all if isinstance(e, AgentDied)]
    assert [(e.code, e.retry_in_s) for e in deaths[:2]] == [(7, 0.5), (7, 1.0)]
    assert seen.lines()[:2] == ["hi", "hi"]
    async with supervised(python(WAIT)) as seen:
        await seen.until(lambda _: seen.lines() == ["up"])
        os.kill(seen.pids()[0], signal.SIGKILL)
        await seen.until(lambda _: len(seen.lines()) == 2)
    assert [e.code for e in seen.all if isinstance(e, AgentDied)] == [-signal.SIGKILL]


async def test_repeated_quick_deaths_end_the_restarts_of_that_process_only() -> None:
    rules = RestartRules(quick_deaths=2)
    async with supervised(
        python("raise SystemExit(1)", "bad"), python(WAIT, "good"), rules=rules
    ) as seen:
        await seen.until(lambda events: any(isinstance(e, AgentGivenUp) for e in events))
        await seen.until(lambda _: "up" in seen.lines())
        good = next(e.pid for e in seen.all if isinstance(e, AgentStarted) and "good" in e.agents)
        assert is_alive(good)
    assert [e for e in seen.all if isinstance(e, AgentGivenUp)] == [AgentGivenUp(("bad",), 1, 2)]
    assert not is_alive(good)


@pytest.mark.behaviour("U-16")
async def test_an_operator_can_stop_start_and_restart_a_process() -> None:
    seen = Seen()
    supervisor = Supervisor([python(WAIT)], seen, grace_s=5.0)
    async with running(supervisor):
        await seen.until(lambda _: seen.lines() == ["up"])
        (process,) = supervisor.processes()
        assert (process.state, process.pid) == ("running", seen.pids()[0])
        await supervisor.stop("bot")
        assert not is_alive(seen.pids()[0])
        assert [each.state for each in supervisor.processes()] == ["stopped"]
        supervisor.start("bot")
        await seen.until(lambda _: len(seen.lines()) == 2)
        await supervisor.restart("bot")
        await seen.until(lambda _: len(seen.lines()) == 3)
        assert supervisor.output("bot") == ("up", "up", "up")
        (process,) = supervisor.processes()
        assert (process.state, process.deaths) == ("running", 0), "a restart is not a death"
        assert not any(isinstance(e, AgentDied) for e in seen.all)


async def test_a_manual_restart_or_start_skips_the_restart_delay() -> None:
    seen, delayed = Seen(), asyncio.Semaphore(0)

    async def endless_delay(seconds: float) -> None:
        delayed.release()
        await asyncio.Event().wait()

    supervisor = Supervisor([python("raise SystemExit(7)")], seen, sleep=endless_delay)
    async with running(supervisor):
        await delayed.acquire()
        await supervisor.restart("bot")
        await delayed.acquire()
        assert [e.retry_in_s for e in seen.all if isinstance(e, AgentDied)] == [0.5, 0.5]
        await supervisor.stop("bot")
        supervisor.start("bot")
        await delayed.acquire()
        assert len(seen.pids()) == 3


async def test_a_process_that_is_stopped_while_it_starts_does_not_run() -> None:
    seen = Seen()
    supervisor = Supervisor([python(WAIT)], seen, grace_s=5.0)
    async with running(supervisor):
        for passes in range(12):  # of the event loop: the first few come before the process
            supervisor.start("bot")
            for _ in range(passes):
                await asyncio.sleep(0)
            await supervisor.stop("bot")
            other = await asyncio.create_subprocess_exec(sys.executable, "-c", "")
            await other.wait()  # a process started before this one has started by now
            await supervisor.stop("bot")
            assert [each.state for each in supervisor.processes()] == ["stopped"], passes
            assert not any(map(is_alive, seen.pids())), passes


async def test_stopping_lets_a_process_handle_sigterm() -> None:
    code = """
import signal, sys, time
def bye(*_):
    print('bye')
    sys.exit(0)
signal.signal(signal.SIGTERM, bye)
print('up')
time.sleep(60)
"""
    async with supervised(python(code)) as seen:
        await seen.until(lambda _: seen.lines() == ["up"])
    assert seen.lines() == ["up", "bye"]
    assert not any(isinstance(e, AgentDied) for e in seen.all)


@pytest.mark.behaviour("L-5")
async def test_stopping_kills_a_process_that_ignores_sigterm_and_its_children(
    listener: socket.socket,
) -> None:
    address = listener.getsockname()
    child = f"import socket, time; s = socket.create_connection({address}); time.sleep(1000)"
    code = f"""
import signal, subprocess, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.run([sys.executable, '-c', {child!r}])
"""
    loop = asyncio.get_running_loop()
    async with supervised(python(code), grace_s=0.05) as seen, asyncio.timeout(WITHIN_S):
        connection, _ = await loop.sock_accept(listener)
    assert not is_alive(seen.pids()[0])
    with connection:
        async with asyncio.timeout(WITHIN_S):
            assert await loop.sock_recv(connection, 1) == b"", "the child closes it when it dies"


async def test_an_orphan_that_keeps_the_pipes_open_does_not_delay_the_restart() -> None:
    code = """
import subprocess, sys
subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(30)'])
print('gone')
"""
    async with supervised(python(code)) as seen:
        await seen.until(lambda _: len(seen.pids()) == 2)
    assert seen.lines()[0] == "gone"


async def test_an_exception_of_the_event_handler_propagates() -> None:
    def broken(event: LifecycleEvent) -> None:
        if isinstance(event, AgentOutput):
            raise ValueError("cannot show it")

    with pytest.raises(ExceptionGroup) as caught:
        await Supervisor([python("print('hi')")], broken).run()
    assert caught.group_contains(ValueError, match="cannot show it")


@pytest.mark.behaviour("L-5")
async def test_a_busy_child_exits_when_its_parent_is_killed() -> None:
    child = """
from hubbub.app.lifeline import watch_parent
watch_parent()
print('up', flush=True)
while True: pass
"""
    parent = f"""
import os, subprocess, sys
from hubbub.app.lifeline import Lifeline
with Lifeline() as lifeline:
    subprocess.run(
        [sys.executable, '-c', {child!r}],
        env={{**os.environ, **lifeline.environment}}, pass_fds=(lifeline.fd,))
"""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", parent, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"up\n"
    process.kill()
    async with asyncio.timeout(WITHIN_S):
        assert await process.stdout.read() == b""  # the child held its stdout open
        await process.wait()


def test_a_lifeline_is_not_inherited_by_default_and_closes_its_descriptor() -> None:
    with Lifeline() as lifeline:
        assert lifeline.environment == {VARIABLE: str(lifeline.fd)}
        assert not os.get_inheritable(lifeline.fd)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(lifeline.fd)
