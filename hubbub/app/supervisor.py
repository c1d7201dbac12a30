"""Starts, supervises and restarts the processes of a network's agents."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import DEVNULL, Process
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, Protocol

from hubbub.app.fork_server import ForkedProcess, ForkServer
from hubbub.app.lifecycle import (
    AgentDied,
    AgentGivenUp,
    AgentOutput,
    AgentStarted,
    AgentStuck,
    Report,
)
from hubbub.app.lifeline import Lifeline
from hubbub.app.units import Unit
from hubbub.clock import SystemClock
from hubbub.protocol.admin import AgentProcess
from hubbub.waiting import done_within

__all__ = [
    "GiveUp",
    "Restart",
    "RestartPolicy",
    "RestartRules",
    "Supervisor",
    "lines",
    "output_pipe",
]


MAX_LINE = 8192
"""Bytes after which a line is split."""
_CHUNK = 65536


class OutputPipe:
    """A pipe for a process's output: it writes to `fd`, and `reader` returns the data."""

    def __init__(self, fd: int, reader: asyncio.StreamReader):
        self.fd, self.reader = fd, reader
        self._open = True

    def handed_over(self) -> None:
        """Close our copy of `fd` once the process has its own, so that `reader` sees its end."""
        if self._open:
            self._open = False
            os.close(self.fd)


@asynccontextmanager
async def output_pipe() -> AsyncIterator[OutputPipe]:
    """A pipe that is closed on exit, even if another process still has the other end open.

    (asyncio's own subprocess pipes stay open while a grandchild holds them.)
    """
    reading, writing = os.pipe()
    loop = asyncio.get_running_loop()
    pipe = OutputPipe(writing, asyncio.StreamReader())
    try:
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(pipe.reader), os.fdopen(reading, "rb", buffering=0)
        )
        try:
            yield pipe
        finally:
            transport.close()
            await asyncio.sleep(0)  # a transport closes its file in the loop's next pass
    finally:
        pipe.handed_over()


async def lines(reader: asyncio.StreamReader) -> AsyncIterator[str]:
    """The lines without line ends, including an unterminated last one."""
    rest = b""
    while chunk := await reader.read(_CHUNK):
        *whole, rest = (rest + chunk).split(b"\n")
        while len(rest) > MAX_LINE:
            whole.append(rest[:MAX_LINE])
            rest = rest[MAX_LINE:]
        for line in whole:
            yield _text(line)
    if rest:
        yield _text(rest)


def _text(line: bytes) -> str:
    return line.removesuffix(b"\r").decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Restart:
    """Restart the process after `after_s` seconds."""

    after_s: float


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Give up: the process died `deaths` times in a row right after its start."""

    deaths: int


@dataclass(frozen=True, slots=True)
class RestartRules:
    """All times in seconds."""

    first_s: float = 0.5
    """Delay before the first restart; each further death doubles it."""
    most_s: float = 60.0
    quick_s: float = 10.0
    """A process that lived shorter than this died quickly."""
    quick_deaths: int = 5
    """This many quick deaths in a row open the circuit."""
    steady_s: float = 120.0
    """A process that lived this long starts with a clean slate."""


class RestartPolicy:
    """Decides what to do after each death of a process, based on its history.

    The delay doubles with each death and resets after a steady life. Only quick deaths in a row
    open the circuit, and an open circuit stays open. A process that started a turn counts as
    healthy: the hub ensures that one turn kills a process only a few times.
    """

    def __init__(self, rules: RestartRules | None = None):
        self._rules = rules or RestartRules()
        self._deaths = 0
        self._quick = 0

    def died(self, lived_s: float, *, worked: bool = False) -> Restart | GiveUp:
        """`worked`: whether it had started a turn."""
        rules = self._rules
        if self._quick >= rules.quick_deaths:
            return GiveUp(self._quick)
        if worked:
            self._deaths = self._quick = 0
            return Restart(rules.first_s)
        if lived_s >= rules.steady_s:
            self._deaths = 0
        self._deaths += 1
        self._quick = self._quick + 1 if lived_s < rules.quick_s else 0
        if self._quick >= rules.quick_deaths:
            return GiveUp(self._quick)
        doublings = min(self._deaths - 1, 32)
        return Restart(min(rules.most_s, rules.first_s * 2.0**doublings))


GRACE_S = 5.0
"""Seconds between SIGTERM and SIGKILL: coding agents and MCP servers have up to 4 of them."""
LINES = 500
"""Lines of a process's output that its log keeps."""
_DRAIN_S = 0.5
"""Seconds to read remaining output; a grandchild can hold the pipes open."""


class AgentPresence(Protocol):
    """The network's view of agents."""

    patience_s: float
    """Seconds for an agent that missed a ping to come back."""

    def begins(self, agent: str) -> int:
        """The number of turns that the agent has started."""

    def present(self, agent: str) -> bool: ...


class _AlwaysPresent:
    """Without a network: assume that agents are present."""

    patience_s = 0.0

    def begins(self, agent: str) -> int:
        return 0

    def present(self, agent: str) -> bool:
        return True


class _SupervisedUnit:
    """A unit with its desired and its actual state."""

    def __init__(self, unit: Unit):
        self.unit = unit
        self.wanted = asyncio.Event()
        self.wanted.set()
        self.again = False
        """Whether it was stopped to be restarted."""
        self.changed = asyncio.Event()
        """Set when its desired state changes."""
        self.given_up = False
        self.task: asyncio.Task[None] | None = None
        self.process: Process | ForkedProcess | None = None
        self.starting = asyncio.Lock()
        """Held while its process is created, so that stopping waits for that."""
        self.since: datetime | None = None
        self.deaths = 0
        self.code: int | None = None
        self.output = deque[str](maxlen=LINES)

    def described(self, agent: str) -> AgentProcess:
        state: Literal["running", "restarting", "stopped", "given_up"] = "restarting"
        if self.process is not None:
            state = "running"
        elif not self.wanted.is_set():
            state = "given_up" if self.given_up else "stopped"
        return AgentProcess(
            agent=agent,
            state=state,
            pid=self.process.pid if self.process else None,
            since=self.since if self.process else None,
            deaths=self.deaths,
            code=self.code,
            together=tuple(each for each in self.unit.agents if each != agent),
        )


class Supervisor:
    """Runs units until cancelled; all processes have ended when `run` returns.

    Processes run in their own sessions, so that a Ctrl-C in the terminal reaches only this process,
    which then stops them in order.
    """

    def __init__(
        self,
        units: Sequence[Unit],
        report: Report,
        *,
        rules: RestartRules | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        grace_s: float = GRACE_S,
        agents: AgentPresence | None = None,
        forks: ForkServer | None = None,
    ):
        self._of = {
            agent: supervised
            for supervised in map(_SupervisedUnit, units)
            for agent in supervised.unit.agents
        }
        self._report = report
        self._rules = rules
        self._sleep = sleep
        self._grace_s = grace_s
        self._agents = agents or _AlwaysPresent()
        self._forks = forks
        self._group: asyncio.TaskGroup | None = None
        self._lifeline: Lifeline

    async def run(self) -> None:
        """Run until cancelled, or until a report fails."""
        with Lifeline() as self._lifeline:
            async with asyncio.TaskGroup() as self._group:
                for supervised in list(self._of.values()):
                    self._begin(supervised)
                await asyncio.Event().wait()  # more units can be added

    def _begin(self, supervised: _SupervisedUnit) -> None:
        if self._group is not None and supervised.task is None:
            supervised.task = self._group.create_task(
                self._keep(supervised), name=f"keep {supervised.unit.agents}"
            )

    async def _keep(self, supervised: _SupervisedUnit) -> None:
        unit = supervised.unit
        while True:
            await supervised.wanted.wait()
            supervised.given_up, policy = False, RestartPolicy(self._rules)
            while supervised.wanted.is_set():
                started, before = SystemClock.monotonic(), self._begins(unit)
                code = await self._run_once(supervised)
                supervised.code = code if code is not None else supervised.code
                if (
                    code is None or supervised.again or not supervised.wanted.is_set()
                ):  # it was stopped
                    supervised.again = False
                    break
                supervised.deaths += 1
                lived_s = SystemClock.monotonic() - started
                verdict = policy.died(lived_s, worked=self._begins(unit) > before)
                if isinstance(verdict, GiveUp):
                    supervised.given_up = True
                    supervised.wanted.clear()
                    self._report(AgentGivenUp(unit.agents, code, verdict.deaths))
                    break
                self._report(AgentDied(unit.agents, code, verdict.after_s))
                await self._pause(supervised, verdict.after_s)
                if supervised.again:
                    supervised.again = False
                    break

    async def _pause(self, supervised: _SupervisedUnit, seconds: float) -> None:
        """Wait before a restart, or until its desired state changes."""
        supervised.changed.clear()
        waiting = {
            asyncio.ensure_future(self._sleep(seconds)),
            asyncio.ensure_future(supervised.changed.wait()),
        }
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waiting:
                each.cancel()

    # Operations for owners of the network -----------------------------------------------------

    def processes(self) -> Sequence[AgentProcess]:
        """The state of each agent's process."""
        return [supervised.described(agent) for agent, supervised in self._of.items()]

    def output(self, agent: str) -> Sequence[str]:
        """The latest lines of output of the agent's process, oldest first."""
        return tuple(self._of[agent].output)

    def start(self, agent: str) -> None:
        """Start the agent's process unless it is running."""
        self._of[agent].wanted.set()

    async def stop(self, agent: str) -> None:
        """Stop the agent's process until it is started again; returns when it has ended."""
        supervised = self._of[agent]
        supervised.wanted.clear()
        supervised.changed.set()
        await self._end(supervised)

    async def restart(self, agent: str) -> None:
        """Restart the agent's process; returns when the old process has ended."""
        supervised = self._of[agent]
        supervised.again = (
            supervised.wanted.is_set()
        )  # otherwise it is not running, and just starts
        supervised.wanted.set()
        supervised.changed.set()
        await self._end(supervised)

    def add(self, unit: Unit) -> None:
        """Supervise another unit."""
        supervised = _SupervisedUnit(unit)
        self._of.update(dict.fromkeys(unit.agents, supervised))
        self._begin(supervised)

    async def remove(self, agent: str) -> None:
        """Stop the agent's process permanently, if there is one. Agents that share it restart only
        with the network."""
        if agent not in self._of:
            return
        await self.stop(agent)
        supervised = self._of.pop(agent)
        if supervised.task is not None and supervised not in self._of.values():
            supervised.task.cancel()

    # One process ------------------------------------------------------------------------------

    def _begins(self, unit: Unit) -> int:
        return sum(map(self._agents.begins, unit.agents))

    def silent(self, agent: str) -> None:
        """The agent missed a ping. If it does not come back, it is killed: it hangs where no signal
        reaches it, in C code that holds the GIL or in a tight loop."""
        process = self._of[agent].process if agent in self._of else None
        if process is not None and self._group is not None:
            self._group.create_task(self._replace(agent, process))

    async def _replace(self, agent: str, process: Process | ForkedProcess) -> None:
        await self._sleep(self._agents.patience_s)
        if self._of[agent].process is not process or self._agents.present(agent):
            return
        self._report(AgentStuck((agent,)))
        _kill(process)

    async def _run_once(self, supervised: _SupervisedUnit) -> int | None:
        """Run the process once. Returns its exit code, or minus the signal that killed it; None if
        it is no longer wanted."""
        unit = supervised.unit
        async with output_pipe() as out, output_pipe() as err:
            async with supervised.starting:
                if not supervised.wanted.is_set():
                    return None
                process = supervised.process = await self._create(unit, out.fd, err.fd)
            out.handed_over()
            err.handed_over()
            supervised.since = datetime.now(UTC)
            self._report(AgentStarted(unit.agents, process.pid))
            readers = [
                asyncio.create_task(self._relay(supervised, "stdout", out.reader)),
                asyncio.create_task(self._relay(supervised, "stderr", err.reader)),
            ]
            try:
                return await process.wait()
            finally:
                supervised.process = None
                await self._stop(process)
                await _drain(readers)

    async def _create(self, unit: Unit, stdout: int, stderr: int) -> Process | ForkedProcess:
        lifeline = self._lifeline
        if self._forks is not None and unit.arguments:
            with contextlib.suppress(ConnectionError):  # it was killed
                return await self._forks.start(
                    unit.arguments,
                    unit.environment,
                    stdout=stdout,
                    stderr=stderr,
                    lifeline=lifeline.fd,
                )
        return await asyncio.create_subprocess_exec(
            *unit.command,
            stdin=DEVNULL,
            stdout=stdout,
            stderr=stderr,
            env={**os.environ, **unit.environment, **lifeline.environment},
            pass_fds=(lifeline.fd,),
            start_new_session=True,
        )

    async def _relay(
        self,
        supervised: _SupervisedUnit,
        stream: Literal["stdout", "stderr"],
        reader: asyncio.StreamReader,
    ) -> None:
        async for line in lines(reader):
            supervised.output.append(line)
            self._report(AgentOutput(supervised.unit.agents, stream, line))

    async def _end(self, supervised: _SupervisedUnit) -> None:
        """Stop its process, even if it is just being created."""
        async with supervised.starting:
            process = supervised.process
        if process is not None:
            await self._stop(process)

    async def _stop(self, process: Process | ForkedProcess) -> None:
        """Terminate the process; kill it and its children if it does not end in time."""
        if process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        if not await done_within(process.wait(), self._grace_s):
            _kill(process)
            await process.wait()


def _kill(process: Process | ForkedProcess) -> None:
    """Kill a process and its children."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


async def _drain(readers: Sequence[asyncio.Task[None]]) -> None:
    """Read remaining output for a moment; raises what a reader raised."""
    done, pending = await asyncio.wait(readers, timeout=_DRAIN_S)
    for reader in pending:
        reader.cancel()
    await asyncio.gather(*pending, return_exceptions=True)
    for reader in done:
        reader.result()
