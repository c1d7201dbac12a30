"""What a mod may ask of the hub: the one door through which built-in and foreign mods go."""

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
from hubbub.errors import OperationError
from hubbub.mods.operation import Calling, Operation, Statement, Value, bad_request, not_found
from hubbub.protocol import thread_ids
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.frames import Signal
from hubbub.protocol.messages import Amendment, Draft, Kind, Message, Participant, TimerMark
from hubbub.protocol.operations import Speech

__all__ = ["Alarm", "Host", "ImportedMessage", "ModPort", "NetworkFacts", "Row"]

Row = tuple[Any, ...]  # Any: SQLite's values, as the statement selects them


class InThread(Protocol):
    """What a mod has in a thread: who reads that may read it."""

    @property
    def thread_id(self) -> str:
        """Canonical."""
        ...


T = TypeVar("T", bound=InThread)


class Latest(NamedTuple):
    """How far a thread has come."""

    tseq: int
    """How many messages it has: the position of its last one; 0 if it has none."""
    seq: int
    """Position of that one in the log."""


class AgentLoad(NamedTuple):
    """How much an agent has to do."""

    running: int
    """Turns that have begun and not ended."""
    open: int
    """Messages that have woken it and that no turn has settled: they wait, or are worked on."""


class ImportedMessage(NamedTuple):
    """A message of a transcript, as it is to enter the log."""

    draft: Draft
    """With `sent_at`: when it was said."""
    interaction: str | None
    """The interaction of this network that it belongs to; None: it opens one."""
    hop: int
    """Its distance from the opening message."""
    once: str
    """The sender has one message under this key."""
    digest: int
    """A checksum of what it was made from: another one under the same key is an error."""


class ReadState(NamedTuple):
    """A thread, as it stands for a participant."""

    latest: Latest
    reads: bool = False
    read_upto: int = 0
    """The position (tseq) up to which the participant has marked it as read."""


@dataclass(frozen=True, slots=True)
class NetworkFacts:
    """What does not change while a network runs."""

    name: str
    epoch: str
    clock: Clock
    steady: Clock
    owners: Collection[str] | None
    """By its config; None: everybody who is no agent."""
    models: Mapping[str, ModelConfig]
    operations: Mapping[str, Operation]
    """By name; those of mods, whose settings may change, as they are now."""
    mods: Sequence[object]
    """In their order."""


class ModPort(Protocol):
    """What only the hub itself knows or does for one mod. `Host` makes of it what mods ask.

    Threads are canonical ids. A thread that there is not is an `OperationError`.
    """

    @property
    def head(self) -> int: ...
    def alarm(self, key: str, moment: float | None, *, wait: bool = False) -> None:
        """Ring at this moment, or with `wait` after so many seconds; None: not any more."""

    def spawn(self, work: Coroutine[Any, Any, None]) -> None: ...
    def describe(self, ids: Iterable[str] | None) -> Sequence[Participant]:
        """Those that are known; None: all."""
        ...

    def resolve(self, call: Calling, name: str, *, speaks: bool) -> str:
        """The thread that the caller means, to read it or to speak there."""
        ...

    def standing(self, thread: str, participant: str | None) -> ReadState:
        """Empty for a thread that does not exist."""
        ...

    def visible(self, participant: str) -> Collection[str]: ...
    def workload(self, agent: str) -> AgentLoad: ...
    async def find(self, reader: Calling | str, id: str, look: bool) -> Message: ...
    async def read(self, thread: str | None, edge: int | None, limit: int) -> Sequence[Message]:
        """The last messages of a thread before a tseq; None: the first of the log after a seq."""
        ...

    async def show(self, messages: Sequence[Message], to: Calling | None) -> Sequence[Message]:
        """As mods show them, and only those that the caller, if one is named, may look at."""
        ...

    def draft(self, call: Calling, said: OutgoingMessage, again: Message | None) -> Draft:
        """A message of the caller; `again`: in place of that one, by its sender."""
        ...

    async def post(self, draft: Draft, once: str) -> int: ...
    def announce(self, draft: Draft, once: str) -> None:
        """Post it; what keeps it from that is logged."""

    def owners(self) -> Sequence[str]:
        """Those who can be notified now."""
        ...

    async def bring_in(
        self, call: Calling, messages: Sequence[ImportedMessage]
    ) -> Sequence[int]: ...
    def send(self, thread: str, frame: bytes, to: Collection[str] | None) -> None:
        """To those who read the thread and are connected, or only these of them."""

    async def select(self, sql: str, values: Sequence[Value]) -> Sequence[Row]: ...
    async def write(self, statements: Sequence[Statement]) -> None: ...


class OutgoingMessage(NamedTuple):
    """What a message is to say, and where."""

    thread: str
    content: JsonValue
    text: str | None
    speech: Speech


class Host:
    """The hub, as one mod sees it. Everything that may take long is a coroutine.

    Messages and threads are shown as their reader sees them: what a participant may not read is
    an `OperationError` with the same words as if it were not there.
    """

    def __init__(self, mod: str, facts: NetworkFacts, port: ModPort, folder: Path | None):
        self._name, self._facts, self._port, self._folder = mod, facts, port, folder

    # Time -------------------------------------------------------------------------------------

    def now(self) -> float:
        """Seconds since the epoch."""
        return self._facts.clock.now()

    def steady(self) -> float:
        """The same by a clock that is never set: for waits, not for dates."""
        return self._facts.steady.now()

    def at(self, when: float, key: str) -> None:
        """Call `on_timer(key)` at this time, or at once if it has passed; replaces what was asked
        for under the key. Kept in memory: ask again in `start`."""
        self._port.alarm(key, when)

    def after(self, seconds: float, key: str) -> None:
        """Call `on_timer(key)` when so much time has passed, whatever the clock is set to; replaces
        what was asked for in this way under the key. Kept in memory."""
        self._port.alarm(key, seconds, wait=True)

    def cancel(self, key: str) -> None:
        """Do not call it."""
        self._port.alarm(key, None)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something beside the messages. What it raises is a failure of the mod."""
        self._port.spawn(work)

    # Who and where ----------------------------------------------------------------------------

    def participant(self, id: str) -> Participant | None:
        return next(iter(self._port.describe([id])), None)

    def participants(self) -> Sequence[Participant]:
        return self._port.describe(None)

    def kind_of(self, id: str) -> Kind | None:
        known = self.participant(id)
        return None if known is None else known.kind

    def owns(self, participant: str) -> bool:
        """Whether the participant is an owner of the network, by its config: in an open one
        everybody is who is no agent."""
        owners = self._facts.owners
        owner = owners is None or participant in owners
        return owner and self.kind_of(participant) != "agent"

    def thread(self, call: Calling, thread: str) -> str:
        """The canonical id of a thread that the caller may read. Raises `OperationError`."""
        return self._port.resolve(call, thread, speaks=False)

    def place(self, call: Calling, to: str) -> str:
        """The canonical id of the thread in which the caller would speak to this participant, or in
        this thread. Raises `OperationError`."""
        return self._port.resolve(call, to, speaks=True)

    def reads(self, participant: str, thread: str) -> bool:
        """Whether the participant reads the thread (canonical id)."""
        return self._port.standing(thread, participant).reads

    def threads_of(self, participant: str) -> Collection[str]:
        """The canonical ids of all threads that the participant reads."""
        return self._port.visible(participant)

    def threads_for(self, call: Calling, thread: str | None) -> Collection[str]:
        """What a list is about: this thread, or all that the caller reads. Raises
        `OperationError`."""
        return self.threads_of(call.participant) if thread is None else [self.thread(call, thread)]

    def visible(self, call: Calling, thing: T | None, id: str, see: str) -> T:
        """The thing with an id, if the caller reads its thread. Raises `OperationError`
        (`not_found`), in the same words whether it is not there or not for the caller."""
        if thing is not None and self.reads(call.participant, thing.thread_id):
            return thing
        raise not_found(f"there is no {id} for you; see {see}")

    def read_upto(self, participant: str, thread: str) -> int:
        """The position (tseq) up to which the participant has marked the thread as read."""
        return self._port.standing(thread, participant).read_upto

    def model(self, name: str) -> ModelConfig | None:
        """An endpoint of a model that the network's YAML names in `models`."""
        return self._facts.models.get(name)

    def busy(self, agent: str) -> AgentLoad:
        """How much the agent has to do now; nothing for a person."""
        return self._port.workload(agent)

    def latest(self, thread: str) -> Latest:
        """How far the thread has come (canonical id): 0 if it is empty."""
        return self._port.standing(thread, None).latest

    # Other operations -------------------------------------------------------------------------

    async def ask(self, call: Calling, operation: str, /, **arguments: JsonValue) -> BaseModel:
        """Ask for an operation that only reads, of the hub or of another mod, as the caller would:
        nothing is answered that it could not ask for itself. Raises `OperationError`."""
        found = self._facts.operations.get(operation)
        if found is None or found.permission != "read":
            text = f"there is no operation {operation[:64]!r} that only reads"
            raise OperationError(ErrorCode.UNKNOWN_OPERATION, text)
        try:
            args = found.input.model_validate(arguments)
        except ValidationError as error:
            raise bad_request(f"{operation}: {error}") from error
        answer = found.handler(call, args)
        result: BaseModel = await answer if found.is_async else answer
        return result

    def mods(self) -> Sequence[object]:
        """All mods of the network, in their order: ask them only what they promise to others
        (`hubbub.mods.text_search.Searchable`, for example)."""
        return self._facts.mods

    # The log ----------------------------------------------------------------------------------

    @property
    def network(self) -> str:
        """What the network is called."""
        return self._facts.name

    @property
    def epoch(self) -> str:
        """The incarnation of its log: no other network has the same."""
        return self._facts.epoch

    @property
    def head(self) -> int:
        """The last position of the log."""
        return self._port.head

    async def message(self, reader: Calling | str, id: str, *, look: bool = False) -> Message:
        """A message, as it is shown, that the caller reads, or a participant that does not call;
        with `look` also one that the caller may look at: as an owner, or for the agent that it
        speaks for. Raises `OperationError`."""
        (message,) = await self._port.show([await self._port.find(reader, id, look)], None)
        return message

    async def page(self, thread: str, before: int | None, limit: int) -> Sequence[Message]:
        """Messages of a thread as they are shown, oldest first, the last ones before this position
        (tseq) of it."""
        return await self._port.show(await self._port.read(thread, before, limit), None)

    async def log(self, after: int, limit: int) -> Sequence[Message]:
        """Messages of the whole log after a position, oldest first: for indexes of the mod, never
        for answers."""
        return await self._port.read(None, after, limit)

    async def readable(
        self, call: Calling, after: int, limit: int
    ) -> tuple[Sequence[Message], int]:
        """Of the `limit` messages of the log after a position those that the caller may look at, as
        they are shown; and the position up to which that is all."""
        head, found = self.head, await self.log(after, limit)
        return await self._port.show(found, call), found[-1].seq if found else head

    async def restore(self, call: Calling, messages: Sequence[ImportedMessage]) -> Sequence[int]:
        """Bring messages of a transcript into the log, as imported ones: they wake no agent, and
        neither ask for nor end anything. Channels that there are not are made, with the caller as
        member. Mods judge them as any other. Returns their positions, when they are durable.
        Raises `OperationError` for the first that is refused; those before it are in the log then.
        """
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
        """A message of the caller in a thread that it reads, judged like any other. Raises
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
        outside: bool = False,
    ) -> Draft:
        """What edits or deletes a message: a message in the same thread, which reaches whom that
        one has reached and wakes no agent. Whether the caller may do so is for the mod to know. Its
        sender is that of the message, if that is the caller or if the caller has spoken for it.
        Raises `OperationError` for content that is too large."""
        speech = Speech(cause=cause or message.id, outside=outside)
        draft = self._port.draft(
            call, OutgoingMessage(message.thread_id, content, text, speech), message
        )
        purpose = Amendment(message_id=message.id, kind=kind)
        # Whom it mentions is not called by it.
        return draft.replace(purpose=purpose, mentions=(), unresolved=())

    def notice(
        self, thread: str, text: str, details: dict[str, JsonValue], once: str, to: Iterable[str]
    ) -> None:
        """A message of the hub, in the name of the mod: it wakes no agent. `once`: it is posted one
        time under this key."""
        self._port.announce(self._says(thread, text, details, to), self._once(once))

    async def tell(
        self, thread: str, text: str, details: dict[str, JsonValue], once: str, to: Iterable[str]
    ) -> None:
        """A notice that is durable when this returns. Raises `OperationError` where a mod refuses
        it, and `StoreUnavailable`."""
        await self._port.post(self._says(thread, text, details, to), self._once(once))

    def tell_owners(self, text: str, details: dict[str, JsonValue], once: str) -> None:
        """A notice for each owner, in a direct thread of the hub with it. `once`: each gets it one
        time under this key."""
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
        outside: bool = False,
    ) -> int:
        """A message of the hub that opens an interaction of its own, because a timer of `timer_of`
        has come: with a person's budget if that is a person (or `operator`, who runs the network),
        else with half of it. It wakes the agents, and mentions the others, of `wakes` who read the
        thread (canonical id). `once`: it is posted one time under this key, whatever happens
        between. Returns its position when it is durable. Raises `OperationError`,
        `StoreUnavailable`."""
        draft = self._says(thread, text, details, wakes)
        draft = draft.replace(purpose=TimerMark(timer_of), outside=outside)
        return await self._port.post(draft, self._once(once))

    def _says(
        self, thread: str, text: str, details: dict[str, JsonValue], to: Iterable[str]
    ) -> Draft:
        """A message of the hub that mentions those who read the thread."""
        facts: dict[str, JsonValue] = {"code": self._name, "mod": self._name, **details}
        members = thread_ids.members_of(thread)
        whom = dict.fromkeys(who for who in to if who in members or self.reads(who, thread))
        return Draft(
            sender_id="hub",
            sender_kind="system",
            thread_id=thread,
            type=thread_ids.kind_of(thread),
            content={"notice": facts["code"], **facts},
            text_representation=text,
            recipients=members,
            mentions=tuple(whom),
        )

    def _once(self, key: str) -> str:
        return f"mod:{self._name}:{key}"

    def signal(
        self, thread: str, kind: str, data: JsonValue, *, to: Collection[str] | None = None
    ) -> None:
        """Tell those who read the thread, and are connected, something of the moment: a signal of
        the type `mod.<name>` with `kind` and `data`. `to`: only these of them."""
        said = {"kind": kind, "data": data}
        signal = Signal(type=f"mod.{self._name}", sender="hub", thread_id=thread, data=said)
        self._port.send(thread, signal.encoded(), to)

    # Rows -------------------------------------------------------------------------------------

    async def rows(self, sql: str, *values: Value) -> Sequence[Row]:
        """Rows of the mod's own tables, as they are durable."""
        return await self._port.select(sql, values)

    async def keep(self, statements: Sequence[Statement]) -> None:
        """Write rows outside any operation, all or none. Raises `StoreUnavailable`, and `conflict`
        (`OperationError`)."""
        await self._port.write(statements)

    @property
    def folder(self) -> Path:
        """A folder of the mod's own beside the store, made when it is first asked for."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix=f"hubbub-{self._name}-"))
            # The store is in memory: what lies beside it goes with it.
            finalize(self, rmtree, self._folder, ignore_errors=True)
        self._folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder.mkdir(mode=0o700, exist_ok=True)
        return self._folder


class Alarm:
    """Rings once, as the mod's `on_timer(key)`, at the earliest of the moments that it was given.

    The mod then deals with all that has come (`rung` first), and names the next moment.
    """

    def __init__(self, host: Host, key: str):
        self._host, self.key = host, key
        self._next: float | None = None

    def at(self, moment: float | None) -> None:
        """Ring at this moment, too, in seconds since the epoch. None: there is none."""
        if moment is not None and (self._next is None or moment < self._next):
            self._next = moment
            self._host.at(moment, self.key)

    def rung(self) -> None:
        """It has rung: no moment is known any more."""
        self._next = None
