"""The processes of a network's agents: what each is started with, and how they are restarted."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, Process
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, Protocol

from hubbub.app.lifecycle import (
    AgentDied,
    AgentGivenUp,
    AgentOutput,
    AgentStarted,
    AgentStuck,
    Report,
)
from hubbub.app.lifeline import RUN, TOKENS, URL, Lifeline
from hubbub.clock import SystemClock
from hubbub.config.loader import LoadedConfig
from hubbub.protocol.admin import AgentProcess
from hubbub.waiting import done_within

__all__ = [
    "GiveUp",
    "Restart",
    "RestartPolicy",
    "RestartRules",
    "Supervisor",
    "Unit",
    "lines",
    "output_pipe",
    "unit",
    "units",
]


MAX_LINE = 8192
"""Bytes after which a line is cut in two."""
_CHUNK = 65536


class OutputPipe:
    """`fd` goes to a process as its output; what it writes there comes out of `reader`."""

    def __init__(self, fd: int, reader: asyncio.StreamReader):
        self.fd, self.reader = fd, reader
        self._open = True

    def handed_over(self) -> None:
        """The process has its own copy of `fd`: from now on its end is the end of the lines."""
        if self._open:
            self._open = False
            os.close(self.fd)


@asynccontextmanager
async def output_pipe() -> AsyncIterator[OutputPipe]:
    """A pipe that is closed at the end, even if somebody still has the other end open.

    (asyncio's own pipes of a subprocess stay open for as long as a grandchild holds them.)
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
    """The lines without their ends; the last one even if it has none."""
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
    """Start it again after `after_s` seconds."""

    after_s: float


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Leave it: it died `deaths` times in a row as soon as it ran."""

    deaths: int


@dataclass(frozen=True, slots=True)
class RestartRules:
    """All times in seconds."""

    first_s: float = 0.5
    """Before the first restart; every further death doubles it."""
    most_s: float = 60.0
    quick_s: float = 10.0
    """Who lived shorter than this died quickly."""
    quick_deaths: int = 5
    """So many quick deaths in a row open the circuit."""
    steady_s: float = 120.0
    """Who lived this long starts with a clean slate."""


class RestartPolicy:
    """The history of one process: given each death, it says what to do.

    The delay doubles from death to death and is forgotten after a steady life; only quick deaths in
    a row open the circuit, and an open circuit stays open. Who came as far as to begin a turn was
    able to live: the hub sees to it that one turn costs few lives.
    """

    def __init__(self, rules: RestartRules | None = None):
        self._rules = rules or RestartRules()
        self._deaths = 0
        self._quick = 0

    def died(self, lived_s: float, *, worked: bool = False) -> Restart | GiveUp:
        """`worked`: whether it had begun a turn."""
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


GRACE_S = 1.0
"""Seconds that a process has after SIGTERM before it is killed."""
LINES = 500
"""Of what a process has written: what its log shows."""
_DRAIN_S = 0.5
"""Seconds for reading what a process left in its pipes; a grandchild may hold them open."""


@dataclass(frozen=True)
class Unit:
    """One process to keep running: one agent, or several that share it."""

    agents: tuple[str, ...]
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    """Beyond this process's own."""


class AgentPresence(Protocol):
    """What the network knows of the agents."""

    patience_s: float
    """How long one that has answered no ping may take to come back."""

    def begins(self, agent: str) -> int:
        """How often a turn of the agent has begun so far."""

    def present(self, agent: str) -> bool: ...


class _Unseen:
    """No network tells anything."""

    patience_s = 0.0

    def begins(self, agent: str) -> int:
        return 0

    def present(self, agent: str) -> bool:
        return True


class _SupervisedUnit:
    """A unit, what is wanted of it, and how it stands."""

    def __init__(self, unit: Unit):
        self.unit = unit
        self.wanted = asyncio.Event()
        self.wanted.set()
        self.again = False
        """Whether somebody has ended it who wants it to run again."""
        self.changed = asyncio.Event()
        """Somebody wants something else of it than before."""
        self.given_up = False
        self.task: asyncio.Task[None] | None = None
        self.process: Process | None = None
        self.starting = asyncio.Lock()
        """Held while its process is made: who wants that one gone waits for it."""
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
    """Runs units until it is cancelled; every process is gone when `run` returns.

    Processes run in sessions of their own, so that a Ctrl-C in the terminal reaches only this
    process, which then stops them in order.
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
    ):
        self._of = {
            agent: kept for kept in map(_SupervisedUnit, units) for agent in kept.unit.agents
        }
        self._report = report
        self._rules = rules
        self._sleep = sleep
        self._grace_s = grace_s
        self._agents = agents or _Unseen()
        self._group: asyncio.TaskGroup | None = None
        self._lifeline: Lifeline

    async def run(self) -> None:
        """Runs until it is cancelled, or a report fails."""
        with Lifeline() as self._lifeline:
            async with asyncio.TaskGroup() as self._group:
                for kept in list(self._of.values()):
                    self._begin(kept)
                await asyncio.Event().wait()  # more may be added

    def _begin(self, kept: _SupervisedUnit) -> None:
        if self._group is not None and kept.task is None:
            kept.task = self._group.create_task(self._keep(kept), name=f"keep {kept.unit.agents}")

    async def _keep(self, kept: _SupervisedUnit) -> None:
        unit = kept.unit
        while True:
            await kept.wanted.wait()
            kept.given_up, policy = False, RestartPolicy(self._rules)
            while kept.wanted.is_set():
                started, before = SystemClock.monotonic(), self._begins(unit)
                code = await self._run_once(kept)
                kept.code = code if code is not None else kept.code
                if code is None or kept.again or not kept.wanted.is_set():  # somebody has ended it
                    kept.again = False
                    break
                kept.deaths += 1
                lived_s = SystemClock.monotonic() - started
                verdict = policy.died(lived_s, worked=self._begins(unit) > before)
                if isinstance(verdict, GiveUp):
                    kept.given_up = True
                    kept.wanted.clear()
                    self._report(AgentGivenUp(unit.agents, code, verdict.deaths))
                    break
                self._report(AgentDied(unit.agents, code, verdict.after_s))
                await self._pause(kept, verdict.after_s)
                if kept.again:
                    kept.again = False
                    break

    async def _pause(self, kept: _SupervisedUnit, seconds: float) -> None:
        """Before the next life; over at once when somebody wants it now, or no more."""
        kept.changed.clear()
        waiting = {
            asyncio.ensure_future(self._sleep(seconds)),
            asyncio.ensure_future(kept.changed.wait()),
        }
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waiting:
                each.cancel()

    # What owners of the network want ----------------------------------------------------------

    def processes(self) -> Sequence[AgentProcess]:
        """How each agent's process stands."""
        return [kept.described(agent) for agent, kept in self._of.items()]

    def output(self, agent: str) -> Sequence[str]:
        """The last lines that the agent's process has written, the oldest first."""
        return tuple(self._of[agent].output)

    def start(self, agent: str) -> None:
        """Let it run, if it does not."""
        self._of[agent].wanted.set()

    async def stop(self, agent: str) -> None:
        """End it until it is started; returns when it is gone."""
        kept = self._of[agent]
        kept.wanted.clear()
        kept.changed.set()
        await self._end(kept)

    async def restart(self, agent: str) -> None:
        """End it, and let it run again at once; returns when the old process is gone."""
        kept = self._of[agent]
        kept.again = kept.wanted.is_set()  # else it does not run, and begins as ever
        kept.wanted.set()
        kept.changed.set()
        await self._end(kept)

    def add(self, unit: Unit) -> None:
        """Keep one more running."""
        kept = _SupervisedUnit(unit)
        self._of.update(dict.fromkeys(unit.agents, kept))
        self._begin(kept)

    async def remove(self, agent: str) -> None:
        """End the agent's process for good, if it has one, with those that share it; they start
        anew with the network."""
        if agent not in self._of:
            return
        await self.stop(agent)
        kept = self._of.pop(agent)
        if kept.task is not None and kept not in self._of.values():
            kept.task.cancel()

    # One process ------------------------------------------------------------------------------

    def _begins(self, unit: Unit) -> int:
        return sum(map(self._agents.begins, unit.agents))

    def silent(self, agent: str) -> None:
        """The agent has answered no ping. If it does not come back it hangs where no signal reaches
        it, in C code with the interpreter's lock or in a loop of its own: it is killed."""
        process = self._of[agent].process if agent in self._of else None
        if process is not None and self._group is not None:
            self._group.create_task(self._replace(agent, process))

    async def _replace(self, agent: str, process: Process) -> None:
        await self._sleep(self._agents.patience_s)
        if self._of[agent].process is not process or self._agents.present(agent):
            return
        self._report(AgentStuck((agent,)))
        _kill(process)

    async def _run_once(self, kept: _SupervisedUnit) -> int | None:
        """One life of the process; its exit code, or minus the signal that ended it. None: nobody
        wants it any more."""
        unit, lifeline = kept.unit, self._lifeline
        async with output_pipe() as out, output_pipe() as err:
            async with kept.starting:
                if not kept.wanted.is_set():
                    return None
                process = kept.process = await asyncio.create_subprocess_exec(
                    *unit.command,
                    stdin=DEVNULL,
                    stdout=out.fd,
                    stderr=err.fd,
                    env={**os.environ, **unit.environment, **lifeline.environment},
                    pass_fds=(lifeline.fd,),
                    start_new_session=True,
                )
            out.handed_over()
            err.handed_over()
            kept.since = datetime.now(UTC)
            self._report(AgentStarted(unit.agents, process.pid))
            readers = [
                asyncio.create_task(self._relay(kept, "stdout", out.reader)),
                asyncio.create_task(self._relay(kept, "stderr", err.reader)),
            ]
            try:
                return await process.wait()
            finally:
                kept.process = None
                await self._stop(process)
                await _drain(readers)

    async def _relay(
        self,
        kept: _SupervisedUnit,
        stream: Literal["stdout", "stderr"],
        reader: asyncio.StreamReader,
    ) -> None:
        async for line in lines(reader):
            kept.output.append(line)
            self._report(AgentOutput(kept.unit.agents, stream, line))

    async def _end(self, kept: _SupervisedUnit) -> None:
        """End its process, also one that is being made."""
        async with kept.starting:
            process = kept.process
        if process is not None:
            await self._stop(process)

    async def _stop(self, process: Process) -> None:
        """Ask it to end, and kill it with all it started if it does not."""
        if process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        if not await done_within(process.wait(), self._grace_s):
            _kill(process)
            await process.wait()


def _kill(process: Process) -> None:
    """With all that it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


async def _drain(readers: Sequence[asyncio.Task[None]]) -> None:
    """Read what is left for a moment, then no longer; raises what a reader raised."""
    done, left = await asyncio.wait(readers, timeout=_DRAIN_S)
    for reader in left:
        reader.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    for reader in done:
        reader.result()


def units(config: LoadedConfig, url: str, tokens: Mapping[str, str], run: str) -> list[Unit]:
    """One process per agent, one for all that share, and one per bridge. `run` names this life of
    the network."""
    own = [(name,) for name, agent in config.file.agents.items() if agent.process == "own"]
    shared = tuple(name for name, agent in config.file.agents.items() if agent.process == "shared")
    together = [*own, shared, *((name,) for name in config.file.bridges)]
    return [unit(config, url, tokens, run, names) for names in together if names]


def unit(
    config: LoadedConfig, url: str, tokens: Mapping[str, str], run: str, names: tuple[str, ...]
) -> Unit:
    """The process of these agents, or of this bridge."""
    command, path = [sys.executable, "-m"], str(config.path)
    if names[0] in config.file.bridges:
        command += ["hubbub", "bridges", "run", "--config", path, "--name", names[0]]
    else:
        command += ["hubbub.cli.agent_process", path, *names]
    mine = json.dumps({name: tokens[name] for name in names})
    return Unit(names, command, {URL: url, RUN: run, "PYTHONUNBUFFERED": "1", TOKENS: mine})
