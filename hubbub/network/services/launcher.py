"""Processes of the agents that the network itself starts, and agents that are down for good. People
waiting for such an agent get a notice, as do those who write to it later; their messages stay
queued and are answered when it runs again. The work of an agent that was removed ends.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from functools import partial
from typing import Protocol

from pydantic import JsonValue

from hubbub.errors import OperationError, StoreUnavailable
from hubbub.logs import get_logger
from hubbub.mods.operation import operation
from hubbub.network.caller import Caller
from hubbub.network.kernel import Kernel
from hubbub.network.log import Entry
from hubbub.network.queries import PendingWakes
from hubbub.network.records import MemoryDeleted, MemoryWritten, Record
from hubbub.network.service import Service
from hubbub.network.services.turns.ending import Ending, EndReason
from hubbub.network.session import Session
from hubbub.protocol.admin import (
    AgentLog,
    AgentProcess,
    AgentProcesses,
    ListAgentProcesses,
    OneAgent,
)
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Message

__all__ = ["Launcher", "LauncherService"]

log = get_logger(__name__)

CONFIGURED, REMOVED = "config/agents", "config/removed"
"""The agents of the latest config, and those that only earlier ones had, as keys in the store of
owners that no participant can be named like."""
GONE = "no longer exists"


class Launcher(Protocol):
    """Starts the agents' processes. Each `agent` argument must be one of `processes`."""

    def processes(self) -> Sequence[AgentProcess]: ...

    def output(self, agent: str) -> Sequence[str]:
        """The last lines, oldest first."""

    def start(self, agent: str) -> None: ...

    async def stop(self, agent: str) -> None:
        """Returns when the process has exited."""

    async def restart(self, agent: str) -> None: ...


class LauncherService(Service):
    """Starts and stops agents' processes for owners, until the network ends: its config decides
    what starts with it. Tracks which agents are down and why, and posts the notices."""

    def __init__(self, kernel: Kernel, ending: Ending):
        super().__init__(kernel)
        self._ending = ending
        self._stopped: dict[str, str] = {}
        """Agents that were stopped while connected, with the reason for the notice."""
        self.launcher: Launcher | None = None

    async def start(self) -> None:
        """End the work of agents that the config had until now. At the start of the hub only, as
        agents that join from elsewhere are not in it. Raises `StoreUnavailable`."""
        keys, now = self.state.memories, self.kernel.file.agents.keys()
        before, removed = keys.of(CONFIGURED), keys.of(REMOVED)
        gone = before - now
        records: list[Record] = [MemoryWritten(CONFIGURED, each, "") for each in now - before]
        records += [MemoryDeleted(CONFIGURED, each) for each in gone]
        records += [MemoryWritten(REMOVED, each, "") for each in gone - removed]
        records += [MemoryDeleted(REMOVED, each) for each in removed & now]
        self.state.down.update(dict.fromkeys((removed | gone) - now, GONE))
        await self._end_all(gone, records)

    async def removed(self, agent: str) -> None:
        """End the work of an agent that an owner removed."""
        try:
            await self._end_all([agent])
        except StoreUnavailable:
            log.warning("the turns of a removed agent end at the next start", agent=agent)
        self._stopped[agent] = GONE
        self.given_up([agent], GONE)

    async def _end_all(self, agents: Collection[str], records: Sequence[Record] = ()) -> None:
        if not agents and not records:
            return
        why = EndReason.removed(self.kernel.clock.now())
        async with self._ending.exclusive():
            await self._ending.end(agents, lambda *_: True, why, records)

    @operation(permission="admin", tool=False)
    def list_agent_processes(self, call: Caller, args: ListAgentProcesses) -> AgentProcesses:
        """List the agents that this network starts itself, and whether they run."""
        return AgentProcesses(processes=tuple(self.launcher.processes() if self.launcher else ()))

    @operation(permission="admin", tool=False)
    def read_agent_log(self, call: Caller, args: OneAgent) -> AgentLog:
        """Read the last lines that an agent's process wrote."""
        return AgentLog(agent=args.agent, lines=tuple(self._of(args).output(args.agent)))

    @operation(permission="admin", tool=False)
    def start_agent(self, call: Caller, args: OneAgent) -> AgentProcesses:
        """Start an agent that was stopped, or that the launcher gave up on."""
        launcher = self._of(args)
        self._wanted(args.agent)
        log.info("starting an agent", agent=args.agent, by=call.participant)
        launcher.start(args.agent)
        return self._about(args.agent)

    @operation(permission="admin", tool=False)
    async def stop_agent(self, call: Caller, args: OneAgent) -> AgentProcesses:
        """Stop an agent's process until it is started again, when it resumes an interrupted
        turn."""
        launcher = self._of(args)
        agents = self._together(args.agent)
        reason = f"is not running: {call.participant} stopped it"
        self._stopped.update(dict.fromkeys(agents, reason))
        log.info("stopping an agent", agent=args.agent, by=call.participant)
        await launcher.stop(args.agent)
        self.given_up([agent for agent in agents if agent in self._stopped], reason)
        return self._about(args.agent)

    @operation(permission="admin", tool=False)
    async def restart_agent(self, call: Caller, args: OneAgent) -> AgentProcesses:
        """Stop an agent's process and start it again. It resumes an interrupted turn."""
        launcher = self._of(args)
        self._wanted(args.agent)
        log.info("restarting an agent", agent=args.agent, by=call.participant)
        await launcher.restart(args.agent)
        return self._about(args.agent)

    async def renew(self, agent: str) -> None:
        """Restart an agent whose config changed, unless an owner stopped it."""
        launcher = self.launcher
        states = {each.agent: each.state for each in launcher.processes()} if launcher else {}
        if launcher is not None and states.get(agent, "stopped") != "stopped":
            await launcher.restart(agent)

    def added(self, agent: str) -> None:
        """An agent that was removed before is about to start."""
        self._stopped.pop(agent, None)

    def absent(self, participant: str, *, replaced: bool) -> None:
        if not replaced and (reason := self._stopped.get(participant)):
            self.given_up([participant], reason)

    def _of(self, args: OneAgent) -> Launcher:
        """Raises `OperationError` for an agent that this network does not start."""
        agents = {each.agent for each in self.launcher.processes()} if self.launcher else set[str]()
        if self.launcher is None or args.agent not in agents:
            text = f"this network does not start {args.agent[:64]!r}"
            raise OperationError(ErrorCode.UNKNOWN_PARTICIPANT, text)
        return self.launcher

    def _about(self, agent: str) -> AgentProcesses:
        processes = self.launcher.processes() if self.launcher else ()
        return AgentProcesses(processes=tuple(p for p in processes if p.agent == agent))

    def _wanted(self, agent: str) -> None:
        """The agent is about to start: who asks it waits."""
        for each in self._together(agent):
            self._stopped.pop(each, None)
            self.state.down.pop(each, None)

    def _together(self, agent: str) -> Sequence[str]:
        (process,) = self._about(agent).processes
        return [agent, *process.together]

    def runs(self, agent: str) -> bool:
        """Whether this network runs the agent's process, or is about to start it again."""
        return any(
            process.state in ("running", "restarting") for process in self._about(agent).processes
        )

    # Agents that do not run -----------------------------------------------------------------

    def given_up(self, agents: Sequence[str], reason: str) -> None:
        """Mark agents as down and notify the people waiting. `reason` continues a sentence that
        begins with the agent's name."""
        gone = [agent for agent in agents if agent not in self.state.presence]
        self.state.down.update(dict.fromkeys(gone, reason))
        self.kernel.notifications.down_changed(gone)
        for agent in gone:
            self.kernel.spawn(
                self.kernel.until_readable(partial(self._notify_waiting, agent, reason))
            )

    def joined(self, session: Session) -> None:
        """An agent runs again."""
        if not session.is_person:
            self.state.down.pop(session.participant, None)

    def committed(self, entries: Sequence[Entry]) -> None:
        """Notify the senders of messages to agents that are down."""
        for entry in entries if self.state.down else ():
            self._committed(entry)

    def _committed(self, entry: Entry) -> None:
        for agent, _, reply in entry.decisions:
            reason = self.state.down.get(agent) if reply == "required" else None
            if reason is not None:
                seq, draft = entry.seq, entry.draft
                self._notice(agent, reason, entry.thread.id, [f"m{seq}"], seq, [draft.author])

    async def _notify_waiting(self, agent: str, reason: str) -> None:
        """Notify the people whose messages wait for the agent, once per thread."""
        rows = await self.store.read(PendingWakes(agent, self.kernel.log.head))
        if agent not in self.state.down:
            return  # it runs again
        waiting = defaultdict[str, list[Message]](list)
        for row in rows:
            if row.reply == "required":
                message = Message.model_validate_json(row.body)
                waiting[message.thread_id].append(message)
        for thread_id, messages in waiting.items():
            ids, people = [m.id for m in messages], [m.author for m in messages]
            self._notice(agent, reason, thread_id, ids, messages[0].seq, people)

    def _notice(
        self,
        agent: str,
        reason: str,
        thread_id: str,
        messages: Sequence[str],
        seq: int,
        people: Sequence[str],
    ) -> None:
        until = "an agent of this name is added" if reason == GONE else "it is started again"
        text = f"{agent} {reason}. Your message stays queued until {until}."
        details: dict[str, JsonValue] = {
            "code": "agent_down",
            "agent": agent,
            "messages": list[JsonValue](messages),
        }
        once = f"down:{seq}:{agent}"[:200]
        to = dict.fromkeys(people)
        self.kernel.writes.notice(thread_id, text, details, once, to=to)
