"""A fake hub for dry runs: serves one agent from a fixture and records its turn. Nothing leaves it.

hub = FakeHub(fixture)
async with Client(MemoryTransport(hub.attach), "clerk", "agent", turns=True) as client: ...
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

from pydantic import Field, JsonValue, TypeAdapter

from hubbub.config.problems import closest
from hubbub.errors import OperationError
from hubbub.ids import interaction_id
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

__all__ = ["DryRunFixture", "FakeHub"]

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
    """What an agent finds when it joins: threads, participants, and the wake of one turn."""

    network: str
    ready: Ready

    @property
    def thread(self) -> str:
        """The thread in which the agent is woken; canonical."""
        return self.ready.pending[0].message.thread_id


class FakeHub:
    """The hub of one dry run.

    over    set when the turn has ended, or cannot continue without a tool result (`stop`)
    steps   the recorded steps, by number
    said    the messages that the agent sent, oldest first
    """

    def __init__(self, scene: DryRunFixture):
        self.scene = scene
        self.over = asyncio.Event()
        self.steps: dict[int, Step] = {}
        self.said: list[str] = []
        self.end: TurnEnd | None = None
        self.lacking: str | None = None
        self._seq = scene.ready.head
        self._stopped_at: int | None = None
        self._outlet: Outlet | None = None

    def stop(self, tool: str, step: int) -> None:
        """There is no result for this tool: end the turn once the step is recorded."""
        if self.lacking is None:
            self.lacking, self._stopped_at = tool, step
        self._check_over()

    # The interface of `Hub.attach` and its inlet --------------------------------------------------

    def attach(self, outlet: Outlet) -> FakeHub:
        self._outlet = outlet
        hello = Hello(network=self.scene.network, epoch="dry-run", heartbeat_s=25.0, limits=_LIMITS)
        self._write(hello)
        return self

    def receive(self, frame: bytes) -> None:
        match _frames.validate_json(frame):
            case Identify():
                self._write(self.scene.ready)
            case Call() as call:
                self._answer(call)
            case _:
                pass  # acknowledgements and heartbeats

    def drained(self) -> None:
        """Nothing to do: frames are never buffered."""

    def lost(self) -> None:
        """The agent has disconnected."""
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
                self._check_over()
                return Done()
            case "end_turn":
                self.end = TurnEnd.model_validate(args["end"])
                self._check_over()
                return Done()
            case "reserve_budget":
                asked = ReserveBudget.model_validate(args)
                return Reservation(turn=asked.turn, key=asked.key)
            case "list_participants":
                return Participants(participants=self.scene.ready.participants)
            case "list_threads":
                return ThreadList(threads=self.scene.ready.threads)
            case "recall":
                return Recalled()
            case "read_thread":
                return self._read(str(args.get("thread")))
        if "text" in args or "content" in args:
            return self._sent(args)
        words = f"{name} does nothing in a dry run"
        raise OperationError(ErrorCode.FORBIDDEN, words)

    def _read(self, thread: str) -> ThreadPage:
        """For the runtime only: a model's own call of this operation needs a result in the case."""
        ready = self.scene.ready
        id = thread_ids.canonical(thread, ready.participant) or thread
        found = (summary.messages for summary in ready.threads if summary.id == id)
        return ThreadPage(thread_id=id, messages=next(found, ()), more=False)

    def _check_over(self) -> None:
        if self.end is not None or self._stopped_at in self.steps:
            self.over.set()

    # Messages that the agent sends
    # -----------------------------------------------------------------

    def _sent(self, args: Mapping[str, JsonValue]) -> SendResult:
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
        """The message that a hub would make of it."""
        shown = args.get("text_representation")
        return Message(
            id=f"m{self._seq}",
            seq=self._seq,
            thread_id=thread,
            tseq=self._seq,
            sender_id=self.scene.ready.participant,
            sender_kind="agent",
            type=thread_ids.kind_of(thread),
            content=args.get("text", args.get("content")),
            text_representation=shown if isinstance(shown, str) else None,
            interaction_id=interaction_id(self._seq),
            hop=0,
            sent_at=datetime.now(UTC),
        )

    def record_message(self, args: Mapping[str, JsonValue]) -> None:
        """Record a message of the agent, given the arguments of the operation."""
        content = args.get("text", args.get("content"))
        if content is not None:
            as_text = (
                content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
            )
            self.said.append(as_text)

    def _thread(self, args: Mapping[str, JsonValue]) -> str:
        """The thread that the arguments address. Raises `OperationError`."""
        me = self.scene.ready.participant
        match args:
            case {"to": str(to)} if (thread := thread_ids.canonical(to, me)) is not None:
                return thread
            case {"to": str(to)}:
                return thread_ids.direct([self._participant(to), me])
            case {"to": list(several)}:
                return thread_ids.direct({*(self._participant(str(one)) for one in several), me})
            case {"channel": str(channel)}:
                return thread_ids.channel(channel.removeprefix("#").removeprefix("channel_"))
            case {"message_id": str(id)} if id.removeprefix("m").isdecimal():
                return thread_ids.reply_thread(self.scene.thread, int(id.removeprefix("m")))
        return thread_ids.BROADCAST

    def _participant(self, name: str) -> str:
        """The participant of this name. Raises `OperationError`."""
        bare, everybody = name.removeprefix("@"), [p.id for p in self.scene.ready.participants]
        if bare in everybody:
            return bare
        near = closest(bare, everybody)
        hint = f"; did you mean '{near}'?" if near else ""
        raise OperationError(
            ErrorCode.UNKNOWN_PARTICIPANT,
            f"there is no participant '{bare}'{hint}",
            details={"near": [near] if near else []},
        )
