"""The hub's services for mods, the same for built-in and third-party ones."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import Any, Literal, NamedTuple, Protocol, TypeVar
from weakref import finalize

from pydantic import BaseModel, JsonValue, ValidationError

from hubbub.clock import Clock
from hubbub.config.agents import ModelConfig
from hubbub.errors import LogDamaged, OperationError
from hubbub.mods.operation import Calling, Operation, Statement, Value, bad_request, not_found
from hubbub.protocol import thread_ids
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.frames import Signal
from hubbub.protocol.messages import Amendment, Draft, Kind, Message, Participant, TimerMark
from hubbub.protocol.operations import Speech

__all__ = ["Alarm", "Host", "ImportedMessage", "ModPort", "NetworkFacts", "Row"]

Row = tuple[Any, ...]  # Any: SQLite values, as the statement selects them


class InThread(Protocol):
    """An item of a mod that belongs to a thread, whose readers can see it."""

    @property
    def thread_id(self) -> str:
        """Canonical."""
        ...


T = TypeVar("T", bound=InThread)


class Latest(NamedTuple):
    """The end of a thread."""

    tseq: int
    """Position of its last message, which is also the number of messages. 0 if it has none."""
    seq: int
    """Position of the last message in the log."""


class AgentLoad(NamedTuple):
    """The workload of an agent."""

    running: int
    """Number of running turns."""
    open: int
    """Number of messages that woke it and are waiting or being worked on."""


class ImportedMessage(NamedTuple):
    """A message of a transcript, to be written into the log."""

    draft: Draft
    """Includes `sent_at`, the original time."""
    interaction: str | None
    """The interaction of this network that it belongs to. None if it opens one."""
    hop: int
    """Its distance from the opening message."""
    once: str
    """Idempotency key: the sender has at most one message with it."""
    digest: int
    """A checksum of the source. A different one with the same key is an error."""


class ReadState(NamedTuple):
    """A thread from the view of a participant."""

    latest: Latest
    reads: bool = False
    read_upto: int = 0
    """Position (tseq) up to which the participant marked it as read."""


@dataclass(frozen=True, slots=True)
class NetworkFacts:
    """Facts that do not change while a network runs."""

    name: str
    epoch: str
    clock: Clock
    steady: Clock
    owners: Collection[str] | None
    """From the config. None if everyone except agents is an owner."""
    models: Mapping[str, ModelConfig]
    operations: Mapping[str, Operation]
    """By name. Those of mods reflect their current settings."""
    mods: Sequence[object]
    """In the configured order."""


class ModPort(Protocol):
    """The hub's side of `Host`, for one mod.

    Threads are canonical ids. A thread that does not exist is an `OperationError`.
    """

    @property
    def head(self) -> int: ...
    def alarm(self, key: str, moment: float | None, *, wait: bool = False) -> None:
        """Set the alarm to this time, or with `wait` in this many seconds. None cancels it."""

    def spawn(self, work: Coroutine[Any, Any, None]) -> None: ...
    def describe(self, ids: Iterable[str] | None) -> Sequence[Participant]:
        """The registered participants with these ids. None means all."""
        ...

    def resolve(self, call: Calling, name: str, *, speaks: bool) -> str:
        """The thread with this name, to read or (`speaks`) to post in."""
        ...

    def standing(self, thread: str, participant: str | None) -> ReadState:
        """Empty for a thread that does not exist."""
        ...

    def visible(self, participant: str) -> Collection[str]: ...
    def workload(self, agent: str) -> AgentLoad: ...
    async def find(self, reader: Calling | str, id: str, look: bool) -> Message: ...
    async def read(self, thread: str | None, edge: int | None, limit: int) -> Sequence[Message]:
        """The last messages of a thread before a tseq, or the first ones of the log after a seq."""
        ...

    async def show(self, messages: Sequence[Message], to: Calling | None) -> Sequence[Message]:
        """The messages as mods show them, without those that the caller `to` cannot see."""
        ...

    def draft(self, call: Calling, message: OutgoingMessage, amends: Message | None) -> Draft:
        """A message of the caller, or one by the sender of `amends` that amends it."""
        ...

    async def post(self, draft: Draft, once: str) -> int: ...
    def announce(self, draft: Draft, once: str) -> None:
        """Post a message. Errors are logged."""

    def owners(self) -> Sequence[str]:
        """The owners that can be notified now."""
        ...

    async def bring_in(
        self, call: Calling, messages: Sequence[ImportedMessage]
    ) -> Sequence[int]: ...
    def send(self, thread: str, frame: bytes, to: Collection[str] | None) -> None:
        """Send to the connected readers of the thread, or only to these of them."""

    async def select(self, sql: str, values: Sequence[Value]) -> Sequence[Row]: ...
    async def write(self, statements: Sequence[Statement]) -> None: ...


class OutgoingMessage(NamedTuple):
    """The content of a message, and its thread."""

    thread: str
    content: JsonValue
    text: str | None
    speech: Speech


class Host:
    """The hub, as one mod sees it. Everything that can take long is a coroutine.

    Messages and threads are shown as their reader sees them. Access to one that the participant
    cannot read raises the same `OperationError` as if it did not exist.
    """

    def __init__(self, mod: str, facts: NetworkFacts, port: ModPort, folder: Path | None):
        self._name, self._facts, self._port, self._folder = mod, facts, port, folder

    # Time -------------------------------------------------------------------------------------

    def now(self) -> float:
        """Seconds since the epoch."""
        return self._facts.clock.now()

    def steady(self) -> float:
        """Seconds by a monotonic clock, for delays and not for dates."""
        return self._facts.steady.now()

    def at(self, when: float, key: str) -> None:
        """Call `on_timer(key)` at this time, or immediately if it has passed. Replaces an earlier
        call with this key. Timers are only in memory: set them again in `start`."""
        self._port.alarm(key, when)

    def after(self, seconds: float, key: str) -> None:
        """Call `on_timer(key)` after this many seconds by the monotonic clock. Replaces an earlier
        call of `after` with this key. Timers are only in memory."""
        self._port.alarm(key, seconds, wait=True)

    def cancel(self, key: str) -> None:
        """Cancel the timer with this key."""
        self._port.alarm(key, None)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine in the background. An exception is a failure of the mod. It is cancelled
        if it is still running a second after the mods have stopped."""
        self._port.spawn(work)

    # Participants and threads -----------------------------------------------------------------

    def participant(self, id: str) -> Participant | None:
        return next(iter(self._port.describe([id])), None)

    def participants(self) -> Sequence[Participant]:
        return self._port.describe(None)

    def kind_of(self, id: str) -> Kind | None:
        participant = self.participant(id)
        return None if participant is None else participant.kind

    def owns(self, participant: str) -> bool:
        """Whether the participant is an owner of the network. In an open network, everyone except
        agents is."""
        owners = self._facts.owners
        is_owner = owners is None or participant in owners
        return is_owner and self.kind_of(participant) != "agent"

    def thread(self, call: Calling, thread: str) -> str:
        """The canonical id of a thread that the caller can read. Raises `OperationError`."""
        return self._port.resolve(call, thread, speaks=False)

    def place(self, call: Calling, to: str) -> str:
        """The canonical id of the thread in which a message of the caller to this participant or
        thread would be posted. Raises `OperationError`."""
        return self._port.resolve(call, to, speaks=True)

    def reads(self, participant: str, thread: str) -> bool:
        """Whether the participant reads the thread (canonical id)."""
        return self._port.standing(thread, participant).reads

    def threads_of(self, participant: str) -> Collection[str]:
        """The canonical ids of all threads that the participant reads."""
        return self._port.visible(participant)

    def threads_for(self, call: Calling, thread: str | None) -> Collection[str]:
        """The threads to list: this one, or all that the caller reads. Raises `OperationError`."""
        return self.threads_of(call.participant) if thread is None else [self.thread(call, thread)]

    def visible(self, call: Calling, item: T | None, id: str, see: str) -> T:
        """`item` if it exists and the caller reads its thread. Otherwise raises `OperationError`
        (`not_found`), with the same message in both cases. `see` is an operation to find items."""
        if item is not None and self.reads(call.participant, item.thread_id):
            return item
        raise not_found(f"there is no {id} that you can see; use {see}")

    def read_upto(self, participant: str, thread: str) -> int:
        """Position (tseq) up to which the participant marked the thread as read."""
        return self._port.standing(thread, participant).read_upto

    def model(self, name: str) -> ModelConfig | None:
        """A model from `models` in the network's YAML."""
        return self._facts.models.get(name)

    def busy(self, agent: str) -> AgentLoad:
        """The current workload of the agent. Empty for a person."""
        return self._port.workload(agent)

    def latest(self, thread: str) -> Latest:
        """The end of the thread (canonical id), with zeros if it is empty."""
        return self._port.standing(thread, None).latest

    # Other operations -------------------------------------------------------------------------

    async def ask(self, call: Calling, operation: str, /, **arguments: JsonValue) -> BaseModel:
        """Call a read-only operation of the hub or another mod on behalf of the caller, with the
        caller's permissions. Raises `OperationError`."""
        target = self._facts.operations.get(operation)
        if target is None or target.permission != "read":
            text = f"there is no read-only operation {operation[:64]!r}"
            raise OperationError(ErrorCode.UNKNOWN_OPERATION, text)
        try:
            args = target.input.model_validate(arguments)
        except ValidationError as error:
            raise bad_request(f"{operation}: {error}") from error
        answer = target.handler(call, args)
        result: BaseModel = await answer if target.is_async else answer
        return result

    def mods(self) -> Sequence[object]:
        """All mods of the network, in order. Use only the interfaces they offer to other mods, such
        as `hubbub.mods.text_search.Searchable`."""
        return self._facts.mods

    # The log ----------------------------------------------------------------------------------

    @property
    def network(self) -> str:
        """The name of the network."""
        return self._facts.name

    @property
    def epoch(self) -> str:
        """The incarnation of the log, unique across networks."""
        return self._facts.epoch

    @property
    def head(self) -> int:
        """The last position of the log."""
        return self._port.head

    async def message(self, reader: Calling | str, id: str, *, look: bool = False) -> Message:
        """A message, as shown, if the reader (the caller or a participant id) can read it. With
        `look`, also one that the caller can see as an owner or on behalf of an agent. Raises
        `OperationError`."""
        (message,) = await self._port.show([await self._port.find(reader, id, look)], None)
        return message

    async def page(self, thread: str, before: int | None, limit: int) -> Sequence[Message]:
        """The last messages of a thread before this position (tseq), as shown, oldest first."""
        return await self._port.show(await self._port.read(thread, before, limit), None)

    async def log(self, after: int, limit: int) -> Sequence[Message]:
        """Messages of the log after a position, oldest first. For indexes, not for answers."""
        return await self._port.read(None, after, limit)

    async def readable(
        self, call: Calling, after: int, limit: int
    ) -> tuple[Sequence[Message], int]:
        """Those of the `limit` messages of the log after a position that the caller can see, as
        shown, and the position up to which they are complete. Damaged ones are replaced by
        notices."""
        head = self.head
        try:
            messages = await self.log(after, limit)
            upto = messages[-1].seq if messages else head
        except LogDamaged as damage:
            upto, intact = damage.seq, damage.seq - 1 - after
            messages = await self.log(after, intact) if intact > 0 else ()
            if damage.notice is not None:
                messages = [*messages, Message.model_validate_json(damage.notice)]
        return await self._port.show(messages, call), upto

    async def restore(self, call: Calling, messages: Sequence[ImportedMessage]) -> Sequence[int]:
        """Write messages of a transcript into the log as imported ones, which wake no agent and do
        not start or end requests. Missing channels are created, with the caller as member. Mods
        check the messages like any other. Returns their positions when they are durable. Raises
        `OperationError` for the first one refused; those before it stay in the log."""
        return await self._port.bring_in(call, messages)

    def draft(
        self,
        call: Calling,
        thread: str,
        content: JsonValue,
        *,
        text: str | None = None,
        mentions: Iterable[str] = (),
        cause: str | None = None,
    ) -> Draft:
        """A message of the caller in a thread that it reads, subject to the usual checks. Raises
        `OperationError`."""
        speech = Speech(mentions=tuple(mentions), cause=cause)
        return self._port.draft(call, OutgoingMessage(thread, content, text, speech), None)

    def amend(
        self,
        call: Calling,
        message: Message,
        kind: Literal["edited", "deleted"],
        content: JsonValue = "",
        *,
        text: str | None = None,
        cause: str | None = None,
        untrusted: bool = False,
    ) -> Draft:
        """A message that edits or deletes another one. It is in the same thread, has the same
        recipients, and wakes no agent. The mod must check that the caller has permission. The
        sender stays the same if that is the caller or an agent the caller acted for. Raises
        `OperationError` for content that is too large."""
        speech = Speech(cause=cause or message.id, untrusted=untrusted)
        draft = self._port.draft(
            call, OutgoingMessage(message.thread_id, content, text, speech), message
        )
        purpose = Amendment(message_id=message.id, kind=kind)
        # An edit notifies no one, so it mentions no one.
        return draft.replace(purpose=purpose, mentions=(), unresolved=())

    def notice(
        self, thread: str, text: str, details: dict[str, JsonValue], once: str, to: Iterable[str]
    ) -> None:
        """Post a message of the hub on behalf of the mod, which wakes no agent. `once` is an
        idempotency key."""
        self._port.announce(self._notice(thread, text, details, to), self._idempotency_key(once))

    async def post_notice(
        self, thread: str, text: str, details: dict[str, JsonValue], once: str, to: Iterable[str]
    ) -> None:
        """Post a notice and wait until it is durable. Raises `OperationError` if a mod rejects it,
        and `StoreUnavailable`."""
        await self._port.post(self._notice(thread, text, details, to), self._idempotency_key(once))

    def notify_owners(self, text: str, details: dict[str, JsonValue], once: str) -> None:
        """Post a notice to each owner, in its direct thread with the hub. `once` is an idempotency
        key per owner."""
        for owner in self._port.owners():
            self.notice(
                thread_ids.direct((owner, "hub")), text, details, f"{once}:{owner}", (owner,)
            )

    async def open(
        self,
        thread: str,
        text: str,
        details: dict[str, JsonValue],
        *,
        timer_of: str,
        wakes: Iterable[str],
        once: str,
        untrusted: bool = False,
    ) -> int:
        """Post a message of the hub that opens a new interaction for a timer of `timer_of`. Its
        budget is a person's if that is a person or `operator` (who runs the network), else half of
        it. Of the participants in `wakes` who read the thread (canonical id), it wakes the agents
        and mentions the others. `once` is an idempotency key that survives restarts. Returns the
        position when it is durable. Raises `OperationError`, `StoreUnavailable`."""
        draft = self._notice(thread, text, details, wakes)
        draft = draft.replace(purpose=TimerMark(timer_of), untrusted=untrusted)
        return await self._port.post(draft, self._idempotency_key(once))

    def _notice(
        self, thread: str, text: str, details: dict[str, JsonValue], to: Iterable[str]
    ) -> Draft:
        """A message of the hub that mentions those of `to` who read the thread."""
        facts: dict[str, JsonValue] = {"code": self._name, "mod": self._name, **details}
        members = thread_ids.members_of(thread)
        mentions = dict.fromkeys(who for who in to if who in members or self.reads(who, thread))
        return Draft(
            sender_id="hub",
            sender_kind="system",
            thread_id=thread,
            type=thread_ids.kind_of(thread),
            content={"notice": facts["code"], **facts},
            text_representation=text,
            recipients=members,
            mentions=tuple(mentions),
        )

    def _idempotency_key(self, key: str) -> str:
        return f"mod:{self._name}:{key}"

    def signal(
        self, thread: str, kind: str, data: JsonValue, *, to: Collection[str] | None = None
    ) -> None:
        """Send a transient signal to the connected readers of the thread, or only to those in `to`.
        It has the type `mod.<name>`, with `kind` and `data`."""
        payload = {"kind": kind, "data": data}
        signal = Signal(type=f"mod.{self._name}", sender="hub", thread_id=thread, data=payload)
        self._port.send(thread, signal.encoded(), to)

    # Rows -------------------------------------------------------------------------------------

    async def rows(self, sql: str, *values: Value) -> Sequence[Row]:
        """Durable rows of the mod's own tables."""
        return await self._port.select(sql, values)

    async def write(self, statements: Sequence[Statement]) -> None:
        """Execute statements outside of an operation, all or none. Returns when they are durable.
        Raises `StoreUnavailable`, and `OperationError` (`conflict`)."""
        await self._port.write(statements)

    @property
    def folder(self) -> Path:
        """A folder for the mod's own files next to the store, created on first access."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix=f"hubbub-{self._name}-"))
            # The store is in memory, so files are deleted with it.
            finalize(self, rmtree, self._folder, ignore_errors=True)
        self._folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder.mkdir(mode=0o700, exist_ok=True)
        return self._folder


class Alarm:
    """A timer for the earliest of several times. It calls the mod's `on_timer(key)` once.

    The mod then calls `rung`, handles everything that is due, and sets the next time.
    """

    def __init__(self, host: Host, key: str):
        self._host, self.key = host, key
        self._next: float | None = None

    def at(self, moment: float | None) -> None:
        """Add a time, in seconds since the epoch. None is ignored."""
        if moment is not None and (self._next is None or moment < self._next):
            self._next = moment
            self._host.at(moment, self.key)

    def rung(self) -> None:
        """Reset the alarm after it rang."""
        self._next = None
