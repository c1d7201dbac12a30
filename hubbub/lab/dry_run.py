"""A dry run: one turn of an agent with its real model against a fake hub.

    result = await dry_run(config, "clerk", fixture, folder, models, {"find_order": "a lamp"})

The agent's messages reach only the fake hub. Its tools are offered and its calls pass every check,
but none runs: a call returns the given result, and a call without one ends the dry run. Tools that
stay inside the runtime work (selecting tools, the knowledge folders, skills), and so does `fork`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from pydantic import Field, JsonValue, TypeAdapter

from hubbub.agents.knowledge import SEARCH_KNOWLEDGE
from hubbub.agents.launch import run_agent
from hubbub.agents.prompt.context import Note
from hubbub.agents.skills import LOAD_SKILL
from hubbub.agents.tools.approval import ApprovalRequest, Approved
from hubbub.agents.tools.ask_agent import ASK_AGENT
from hubbub.agents.tools.assembly import ToolKit
from hubbub.agents.tools.base import CallSite, Tool
from hubbub.agents.tools.registry import SELECT
from hubbub.agents.tools.standard_tools import CHECK, FORK, WAIT_FOR
from hubbub.agents.tools.tidy_steps import TIDY_STEPS
from hubbub.agents.tools.tool_names import wrong_names
from hubbub.client import Client, MemoryTransport
from hubbub.config.models import AgentConfig, ModelConfig
from hubbub.config.problems import closest
from hubbub.errors import OperationError
from hubbub.ids import interaction_id
from hubbub.lab.expectations import CaseRun
from hubbub.protocol import thread_ids
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.frames import (
    Call,
    ClientFrame,
    ErrorFrame,
    Hello,
    Identify,
    LimitsInfo,
    Ready,
    Result,
)
from hubbub.protocol.memory import Recalled
from hubbub.protocol.messages import Message, Model
from hubbub.protocol.operations import (
    BeginTurnResult,
    Done,
    Participants,
    SendResult,
    ThreadList,
    ThreadPage,
)
from hubbub.protocol.spending import Reservation, ReserveBudget
from hubbub.protocol.turns import Step, TurnEnd
from hubbub.protocol.wire import Outlet
from hubbub.waiting import cancel

__all__ = ["DryRunFixture", "dry_run"]


# A fake hub for dry runs, which serves one agent from a fixture and records its turn.


_LIMITS = LimitsInfo(
    frame_bytes=16 * 1024 * 1024,
    json_depth=100,
    text_bytes=1024 * 1024,
    calls_per_second=1e6,
    burst=10**6,
    channels=128,
    thread_depth=5,
    unacknowledged=256,
)
_frames: TypeAdapter[ClientFrame] = TypeAdapter(Annotated[ClientFrame, Field(discriminator="op")])


@dataclass(frozen=True, slots=True)
class DryRunFixture:
    """The network's state when the agent joins: threads, participants, and one pending wake."""

    network: str
    ready: Ready

    @property
    def thread(self) -> str:
        """The canonical id of the thread in which the agent is woken."""
        return self.ready.pending[0].message.thread_id


class FakeHub:
    """The hub of one dry run.

    ended   set when the turn ends, or cannot continue without a tool result (`stop`)
    steps   the recorded steps, by number
    sent    the agent's messages as text, oldest first
    """

    def __init__(self, fixture: DryRunFixture):
        self.fixture = fixture
        self.ended = asyncio.Event()
        self.steps: dict[int, Step] = {}
        self.sent: list[str] = []
        self.end: TurnEnd | None = None
        self.lacking: str | None = None
        self._seq = fixture.ready.head
        self._stopped_at: int | None = None
        self._outlet: Outlet | None = None

    def stop(self, tool: str, step: int) -> None:
        """End the dry run once the step is recorded, because the tool has no result."""
        if self.lacking is None:
            self.lacking, self._stopped_at = tool, step
        self._check_end()

    # The interface of `Hub.attach` and its inlet --------------------------------------------------

    def attach(self, outlet: Outlet) -> FakeHub:
        self._outlet = outlet
        hello = Hello(
            network=self.fixture.network, epoch="dry-run", heartbeat_s=25.0, limits=_LIMITS
        )
        self._write(hello)
        return self

    def receive(self, frame: bytes) -> None:
        match _frames.validate_json(frame):
            case Identify():
                self._write(self.fixture.ready)
            case Call() as call:
                self._answer(call)
            case _:
                pass  # acknowledgements and heartbeats

    def drained(self) -> None:
        """Does nothing: frames are never buffered."""

    def lost(self) -> None:
        """The agent disconnected."""
        self._outlet = None

    def _write(self, frame: Model) -> None:
        if self._outlet is not None:
            self._outlet.write(frame.model_dump_json().encode())

    # Calls ----------------------------------------------------------------------------------------

    def _answer(self, call: Call) -> None:
        try:
            value = self._value(call.name, call.args).model_dump(mode="json")
        except OperationError as exc:
            self._write(
                ErrorFrame(ref=call.ref, code=exc.code, message=exc.message, details=exc.details)
            )
            return
        self._write(Result(ref=call.ref, value=value))

    def _value(self, name: str, args: Mapping[str, JsonValue]) -> Model:
        match name:
            case "begin_turn":
                return BeginTurnResult(attempts=1)
            case "leave_turn":
                return Done()
            case "record_step":
                step = Step.model_validate(args["step"])
                self.steps[step.n] = step
                self._check_end()
                return Done()
            case "end_turn":
                self.end = TurnEnd.model_validate(args["end"])
                self._check_end()
                return Done()
            case "reserve_budget":
                request = ReserveBudget.model_validate(args)
                return Reservation(turn=request.turn, key=request.key)
            case "list_participants":
                return Participants(participants=self.fixture.ready.participants)
            case "list_threads":
                return ThreadList(threads=self.fixture.ready.threads)
            case "recall":
                return Recalled()
            case "read_thread":
                return self._read(str(args.get("thread")))
        if "text" in args or "content" in args:
            return self._send(args)
        raise OperationError(ErrorCode.FORBIDDEN, f"{name} does nothing in a dry run")

    def _read(self, thread: str) -> ThreadPage:
        """For the runtime only; a model's call of this operation needs a result in the case."""
        ready = self.fixture.ready
        id = thread_ids.canonical(thread, ready.participant) or thread
        messages = next((summary.messages for summary in ready.threads if summary.id == id), ())
        return ThreadPage(thread_id=id, messages=messages, more=False)

    def _check_end(self) -> None:
        if self.end is not None or self._stopped_at in self.steps:
            self.ended.set()

    # The agent's messages -------------------------------------------------------------------------

    def _send(self, args: Mapping[str, JsonValue]) -> SendResult:
        thread = self._thread(args)
        self.record_message(args)
        self._seq += 1
        message = self._message(thread, args)
        return SendResult(
            id=message.id,
            seq=self._seq,
            thread_id=thread,
            tseq=self._seq,
            message=message,
        )

    def _message(self, thread: str, args: Mapping[str, JsonValue]) -> Message:
        """The message that a hub would build from the arguments."""
        text = args.get("text_representation")
        return Message(
            id=f"m{self._seq}",
            seq=self._seq,
            thread_id=thread,
            tseq=self._seq,
            sender_id=self.fixture.ready.participant,
            sender_kind="agent",
            type=thread_ids.kind_of(thread),
            content=args.get("text", args.get("content")),
            text_representation=text if isinstance(text, str) else None,
            interaction_id=interaction_id(self._seq),
            hop=0,
            sent_at=datetime.now(UTC),
        )

    def record_message(self, args: Mapping[str, JsonValue]) -> None:
        """Record the agent's message in an operation's arguments, if any."""
        content = args.get("text", args.get("content"))
        if content is not None:
            as_text = (
                content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
            )
            self.sent.append(as_text)

    def _thread(self, args: Mapping[str, JsonValue]) -> str:
        """The addressed thread. Raises `OperationError`."""
        me = self.fixture.ready.participant
        match args:
            case {"to": str(to)} if (thread := thread_ids.canonical(to, me)) is not None:
                return thread
            case {"to": str(to)}:
                return thread_ids.direct([self._participant(to), me])
            case {"to": list(names)}:
                return thread_ids.direct({*(self._participant(str(name)) for name in names), me})
            case {"channel": str(channel)}:
                return thread_ids.channel(channel.removeprefix("#").removeprefix("channel_"))
            case {"message_id": str(id)} if id.removeprefix("m").isdecimal():
                return thread_ids.reply_thread(self.fixture.thread, int(id.removeprefix("m")))
        return thread_ids.BROADCAST

    def _participant(self, name: str) -> str:
        """The id of the named participant. Raises `OperationError`."""
        bare, ids = name.removeprefix("@"), [p.id for p in self.fixture.ready.participants]
        if bare in ids:
            return bare
        near = closest(bare, ids)
        hint = f"; did you mean '{near}'?" if near else ""
        raise OperationError(
            ErrorCode.UNKNOWN_PARTICIPANT,
            f"there is no participant '{bare}'{hint}",
            details={"near": [near] if near else []},
        )


INTERNAL_TOOLS = frozenset(
    {SELECT, TIDY_STEPS, SEARCH_KNOWLEDGE, LOAD_SKILL, FORK, WAIT_FOR, CHECK}
)
"""Tools that run within the runtime, without even the hub."""


async def dry_run(
    config: AgentConfig,
    name: str,
    fixture: DryRunFixture,
    base_dir: Path,
    models: Mapping[str, ModelConfig],
    results: Mapping[str, JsonValue],
    *,
    mods: Sequence[Note] = (),
) -> CaseRun:
    """Run the turn of the wake in `fixture`.

    Omits MCP servers, hooks and the agent's greeting. Approves calls that need a person's approval.
    Raises `ConfigError` as `run_agent` does.
    """
    isolated = _isolated(config, name, fixture, base_dir)
    hub = FakeHub(fixture)
    async with Client(MemoryTransport(hub.attach), name, "agent", turns=True) as client:
        work = asyncio.create_task(
            run_agent(
                isolated,
                name,
                client,
                base_dir,
                models,
                grace_s=0,
                mods=mods,
                approver=_ApproveAll(),
                performer=_CannedResults(hub, results).perform,
            )
        )
        ended = asyncio.create_task(hub.ended.wait())
        try:
            await asyncio.wait({work, ended}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                work.result()  # raises: without cancellation it ends only on an error
        finally:
            await cancel(ended, work)
    end = hub.end
    return CaseRun(
        steps=tuple(step for _, step in sorted(hub.steps.items())),
        sent=tuple(hub.sent),
        outcome=end.outcome if end else None,
        reason=end.reason if end else "",
        lacking=hub.lacking,
    )


def _isolated(
    config: AgentConfig, name: str, fixture: DryRunFixture, base_dir: Path
) -> AgentConfig:
    """The config without MCP servers, settings of their tools, hooks and greeting."""
    isolated = config.model_copy(update={"mcp": [], "hooks": [], "greet": None})
    if not config.mcp:
        return isolated
    offered = {o.name for o in fixture.ready.operations if o.tool and o.permission != "admin"}
    own = ToolKit(config, name, base_dir).own_names
    of_mcp = set(wrong_names(isolated, offered, own)) - set(wrong_names(config, offered, own))
    drop = {(name.key, name.at) for name in of_mcp}
    disabled = [t for n, t in enumerate(config.disabled_tools) if ("disabled_tools", n) not in drop]
    settings = {t: s for t, s in config.tool_settings.items() if ("tool_settings", t) not in drop}
    update: dict[str, object] = {"disabled_tools": disabled, "tool_settings": settings}
    if ("begin_with", None) in drop:
        update["begin_with"] = None
    return isolated.model_copy(update=update)


@dataclass(frozen=True, slots=True)
class _CannedResults:
    """Replaces tools by their canned results."""

    hub: FakeHub
    results: Mapping[str, JsonValue]

    async def perform(self, tool: Tool, arguments: Mapping[str, JsonValue], site: CallSite) -> str:
        """Like `Tool.run`. Without a result it ends the dry run, and never returns."""
        if tool.name in self.results:
            result = self.results[tool.name]
            if tool.speaks:
                self.hub.record_message(arguments)
            return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
        if tool.name in INTERNAL_TOOLS or (tool.speaks and tool.name != ASK_AGENT):
            return await tool.run(arguments, site)
        self.hub.stop(tool.name, site.step)
        await asyncio.Event().wait()
        raise AssertionError("unreachable: the event is never set")


class _ApproveAll:
    """Approves every call, since calls have no effect."""

    async def approve(self, call: ApprovalRequest) -> Approved:
        return Approved(call.arguments)
