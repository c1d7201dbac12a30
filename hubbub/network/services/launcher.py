"""The processes of the agents that the network itself starts: for owners only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from hubbub.errors import OperationError
from hubbub.logs import get_logger
from hubbub.mods.operation import operation
from hubbub.network.caller import Caller
from hubbub.network.kernel import Kernel
from hubbub.network.service import Service
from hubbub.network.services.down import DownService
from hubbub.protocol.admin import (
    AgentLog,
    AgentProcess,
    AgentProcesses,
    ListAgentProcesses,
    OneAgent,
)
from hubbub.protocol.codes import ErrorCode

__all__ = ["Launcher", "LauncherService"]

log = get_logger(__name__)


class Launcher(Protocol):
    """Who starts the agents. All that is asked of it is about an agent of `processes`."""

    def processes(self) -> Sequence[AgentProcess]: ...

    def output(self, agent: str) -> Sequence[str]:
        """The last lines, the oldest first."""

    def start(self, agent: str) -> None: ...

    async def stop(self, agent: str) -> None:
        """Returns when the process is gone."""

    async def restart(self, agent: str) -> None: ...


class LauncherService(Service):
    """Hands what owners want of processes to the launcher. It holds until the network ends: what
    starts with it stands in its config."""

    def __init__(self, kernel: Kernel, down: DownService):
        super().__init__(kernel)
        self._down = down
        self._stopped: dict[str, str] = {}
        """Agents that were stopped while they were here, with the reason that people are told."""
        self.launcher: Launcher | None = None

    @operation(permission="admin", tool=False)
    def list_agent_processes(self, call: Caller, args: ListAgentProcesses) -> AgentProcesses:
        """List the agents that this network starts itself, and whether they run."""
        return AgentProcesses(processes=tuple(self.launcher.processes() if self.launcher else ()))

    @operation(permission="admin", tool=False)
    def read_agent_log(self, call: Caller, args: OneAgent) -> AgentLog:
        """Read the last lines that an agent's process has written."""
        return AgentLog(agent=args.agent, lines=tuple(self._of(args).output(args.agent)))

    @operation(permission="admin", tool=False)
    def start_agent(self, call: Caller, args: OneAgent) -> AgentProcesses:
        """Start an agent that was stopped, or that was given up."""
        launcher = self._of(args)
        for agent in self._together(args.agent):
            self._stopped.pop(agent, None)
        log.info("an agent is started", agent=args.agent, by=call.participant)
        launcher.start(args.agent)
        return self._about(args.agent)

    @operation(permission="admin", tool=False)
    async def stop_agent(self, call: Caller, args: OneAgent) -> AgentProcesses:
        """End an agent's process until somebody starts it again. A turn that it was in goes on
        then."""
        launcher = self._of(args)
        agents = self._together(args.agent)
        reason = f"does not run: {call.participant} has stopped it"
        self._stopped.update(dict.fromkeys(agents, reason))
        log.info("an agent is stopped", agent=args.agent, by=call.participant)
        await launcher.stop(args.agent)
        self._down.put([agent for agent in agents if agent in self._stopped], reason)
        return self._about(args.agent)

    @operation(permission="admin", tool=False)
    async def restart_agent(self, call: Caller, args: OneAgent) -> AgentProcesses:
        """End an agent's process and start it again. A turn that it was in goes on then."""
        launcher = self._of(args)
        for agent in self._together(args.agent):
            self._stopped.pop(agent, None)
        log.info("an agent is restarted", agent=args.agent, by=call.participant)
        await launcher.restart(args.agent)
        return self._about(args.agent)

    async def renew(self, agent: str) -> None:
        """The agent's config has changed: unless an owner has stopped it, it runs with that."""
        launcher = self.launcher
        states = {each.agent: each.state for each in launcher.processes()} if launcher else {}
        if launcher is not None and states.get(agent, "stopped") != "stopped":
            await launcher.restart(agent)

    def put_down(self, agent: str, reason: str | None) -> None:
        """People are told why an agent is not here from the moment it goes; None: it comes."""
        if reason is None:
            self._stopped.pop(agent, None)
            return
        self._stopped[agent] = reason
        self._down.put([agent], reason)

    def absent(self, participant: str, *, replaced: bool) -> None:
        if not replaced and (reason := self._stopped.get(participant)):
            self._down.put([participant], reason)

    def _of(self, args: OneAgent) -> Launcher:
        """Raises `OperationError` for an agent that this network does not start."""
        known = {each.agent for each in self.launcher.processes()} if self.launcher else set[str]()
        if self.launcher is None or args.agent not in known:
            text = f"this network does not start {args.agent[:64]!r}"
            raise OperationError(ErrorCode.UNKNOWN_PARTICIPANT, text)
        return self.launcher

    def _about(self, agent: str) -> AgentProcesses:
        processes = self.launcher.processes() if self.launcher else ()
        return AgentProcesses(processes=tuple(p for p in processes if p.agent == agent))

    def _together(self, agent: str) -> Sequence[str]:
        (process,) = self._about(agent).processes
        return [agent, *process.together]
