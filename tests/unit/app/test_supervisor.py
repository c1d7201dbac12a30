"""Real processes, kept running and stopped."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
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
from hubbub.app.supervisor import RestartRules, Supervisor, Unit
from tests.unit.app.seen import WITHIN_S, Seen


def python(code: str, *names: str, **environment: str) -> Unit:
    return Unit(names or ("bot",), [sys.executable, "-uc", code], environment)


@asynccontextmanager
async def supervised(
    *units: Unit, rules: RestartRules | None = None, grace_s: float = 5.0
) -> AsyncIterator[Seen]:
    """The units, kept running for as long as the block lasts; restarts come without delay."""
    seen = Seen()

    async def at_once(seconds: float) -> None:
        await asyncio.sleep(0)

    supervisor = Supervisor(units, seen, rules=rules, sleep=at_once, grace_s=grace_s)
    task = asyncio.create_task(supervisor.run())
    try:
        yield seen
    finally:
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            task.result()


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


WAIT = "import time\nprint('up')\ntime.sleep(60)"

pytestmark = pytest.mark.slow


@pytest.mark.behaviour("L-4")
async def test_what_a_process_writes_comes_line_by_line_with_its_name_and_stream() -> None:
    code = (
        "import os, sys\nprint(os.environ['SECRET'], os.getsid(0) == os.getpid())\n"
        f"print('two', file=sys.stderr)\n{WAIT}"
    )
    async with supervised(python(code, "a", "b", SECRET="s3cret")) as seen:
        await seen.until(lambda _: len(seen.lines()) == 2 and bool(seen.lines("stderr")))
    assert seen.lines() == ["s3cret True", "up"], "its environment, and no signal of the terminal"
    assert seen.lines("stderr") == ["two"]
    assert {h.agents for h in seen.all if isinstance(h, AgentOutput)} == {("a", "b")}


async def test_a_process_that_dies_or_is_killed_is_started_again_with_its_code_told() -> None:
    async with supervised(python("print('hi')\nraise SystemExit(7)")) as seen:
        await seen.until(lambda _: len(seen.pids()) == 3)
    died = [h for h in seen.all if isinstance(h, AgentDied)]
    assert [(h.code, h.retry_in_s) for h in died[:2]] == [(7, 0.5), (7, 1.0)]
    assert seen.lines()[:2] == ["hi", "hi"]
    async with supervised(python(WAIT)) as seen:
        await seen.until(lambda _: seen.lines() == ["up"])
        os.kill(seen.pids()[0], signal.SIGKILL)
        await seen.until(lambda _: len(seen.lines()) == 2)
    assert [h.code for h in seen.all if isinstance(h, AgentDied)] == [-signal.SIGKILL]


async def test_quick_deaths_end_the_restarts_of_this_process_only() -> None:
    rules = RestartRules(quick_deaths=2)
    async with supervised(
        python("raise SystemExit(1)", "bad"), python(WAIT, "good"), rules=rules
    ) as seen:
        await seen.until(lambda _: any(isinstance(h, AgentGivenUp) for h in seen.all))
        await seen.until(lambda _: "up" in seen.lines())
        good = next(h.pid for h in seen.all if isinstance(h, AgentStarted) and "good" in h.agents)
        assert alive(good)
    assert [h for h in seen.all if isinstance(h, AgentGivenUp)] == [AgentGivenUp(("bad",), 1, 2)]
    assert not alive(good)


@pytest.mark.behaviour("U-16")
async def test_a_process_is_stopped_started_and_started_again_by_who_runs_the_network() -> None:
    seen = Seen()
    supervisor = Supervisor([python(WAIT)], seen, grace_s=5.0)
    task = asyncio.create_task(supervisor.run())
    try:
        await seen.until(lambda _: seen.lines() == ["up"])
        (process,) = supervisor.processes()
        assert (process.state, process.pid) == ("running", seen.pids()[0])
        await supervisor.stop("bot")
        assert not alive(seen.pids()[0])
        assert [each.state for each in supervisor.processes()] == ["stopped"]
        supervisor.start("bot")
        await seen.until(lambda _: len(seen.lines()) == 2)
        await supervisor.restart("bot")
        await seen.until(lambda _: len(seen.lines()) == 3)
        assert supervisor.output("bot") == ("up", "up", "up")
        (process,) = supervisor.processes()
        assert (process.state, process.deaths) == ("running", 0), "it has not ended by itself"
        assert not any(isinstance(h, AgentDied) for h in seen.all)
    finally:
        task.cancel()
        await asyncio.wait([task])


async def test_a_restart_during_the_pause_before_the_next_life_does_not_wait_for_it() -> None:
    seen, paused = Seen(), asyncio.Semaphore(0)

    async def long_pause(seconds: float) -> None:
        paused.release()
        await asyncio.Event().wait()

    supervisor = Supervisor([python("raise SystemExit(7)")], seen, sleep=long_pause)
    task = asyncio.create_task(supervisor.run())
    try:
        await paused.acquire()
        await supervisor.restart("bot")
        await paused.acquire()
        assert [h.retry_in_s for h in seen.all if isinstance(h, AgentDied)] == [0.5, 0.5]
        await supervisor.stop("bot")
        supervisor.start("bot")
        await paused.acquire()
        assert len(seen.pids()) == 3
    finally:
        task.cancel()
        await asyncio.wait([task])


async def test_what_is_stopped_while_it_is_being_started_does_not_run() -> None:
    seen = Seen()
    supervisor = Supervisor([python(WAIT)], seen, grace_s=5.0)
    task = asyncio.create_task(supervisor.run())
    try:
        for passes in range(12):  # of the loop: in some of them there is no process yet
            supervisor.start("bot")
            for _ in range(passes):
                await asyncio.sleep(0)
            await supervisor.stop("bot")
            other = await asyncio.create_subprocess_exec(sys.executable, "-c", "")
            await other.wait()  # whatever was on its way has come
            await supervisor.stop("bot")  # and is gone
            assert [each.state for each in supervisor.processes()] == ["stopped"], passes
            assert not any(map(alive, seen.pids())), passes
    finally:
        task.cancel()
        await asyncio.wait([task])


async def test_stopping_asks_first() -> None:
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
    assert not alive(seen.pids()[0])
    assert not any(isinstance(h, AgentDied) for h in seen.all)


@pytest.mark.behaviour("L-5")
async def test_stopping_kills_what_does_not_listen_and_what_it_started() -> None:
    code = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])
print(child.pid)
time.sleep(60)
"""
    async with supervised(python(code), grace_s=0.05) as seen:
        await seen.until(lambda _: bool(seen.lines()))
    assert not alive(seen.pids()[0])
    await until_gone(int(seen.lines()[0]))


async def until_gone(pid: int) -> None:
    """Wait for the end of a process that is nobody's child here, so that only asking helps."""
    async with asyncio.timeout(WITHIN_S):
        while await is_running(pid):
            pass


async def is_running(pid: int) -> bool:
    """Whether a process is neither gone nor a zombie that waits for somebody to reap it."""
    probe = await asyncio.create_subprocess_exec(
        "ps", "-o", "stat=", "-p", str(pid), stdout=asyncio.subprocess.PIPE
    )
    out, _ = await probe.communicate()
    return bool(out.strip()) and not out.startswith(b"Z")


async def test_a_grandchild_that_keeps_the_pipes_open_does_not_hold_up_the_restart() -> None:
    code = """
import subprocess, sys
subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(30)'])
print('gone')
"""
    async with supervised(python(code)) as seen:
        await seen.until(lambda _: len(seen.pids()) == 2)
    assert seen.lines()[0] == "gone"


async def test_a_failure_to_report_is_not_swallowed() -> None:
    def broken(event: LifecycleEvent) -> None:
        if isinstance(event, AgentOutput):
            raise ValueError("cannot show it")

    with pytest.raises(ExceptionGroup) as caught:
        await Supervisor([python("print('hi')")], broken).run()
    assert caught.group_contains(ValueError, match="cannot show it")


@pytest.mark.behaviour("L-5")
async def test_children_end_when_their_parent_is_killed() -> None:
    child = """
from hubbub.app.lifeline import watch_parent
watch_parent()
print('child', flush=True)
while True: pass
"""
    parent = f"""
import os, subprocess, sys, time
from hubbub.app.lifeline import Lifeline
with Lifeline() as lifeline:
    child = subprocess.Popen(
        [sys.executable, '-c', {child!r}], stdout=subprocess.PIPE,
        env={{**os.environ, **lifeline.environment}}, pass_fds=(lifeline.fd,))
    child.stdout.readline()
    print(child.pid, flush=True)
    time.sleep(60)
"""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", parent, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    pid = int(await process.stdout.readline())
    assert await is_running(pid)
    process.kill()
    await process.wait()
    await until_gone(pid)


def test_the_lifelines_writing_end_stays_with_the_parent() -> None:
    with Lifeline() as lifeline:
        assert lifeline.environment == {VARIABLE: str(lifeline.fd)}
        assert not os.get_inheritable(lifeline.fd)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(lifeline.fd)
