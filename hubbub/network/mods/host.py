"""`ModHost`: the hub as one mod sees it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import JsonValue

from hubbub.errors import OperationError
from hubbub.mods.api import Mod
from hubbub.mods.host import Busy, Host, Latest, NetworkFacts, Restored, Row
from hubbub.mods.operation import Calling
from hubbub.mods.rows import Statement, Value
from hubbub.network.caller import Caller
from hubbub.network.kernel import Kernel
from hubbub.network.log import Entry
from hubbub.network.mods.failures import tell_owners
from hubbub.network.mods.operations import conflicted
from hubbub.network.mods.posting import opening, posted, restored, said_again
from hubbub.network.queries import ModSelect
from hubbub.network.records import ModRows
from hubbub.network.registry import Registry
from hubbub.network.routing import Sender
from hubbub.network.services.messages import find_message, stored_message, unknown_message
from hubbub.network.services.threads import find_thread
from hubbub.network.threads import Thread
from hubbub.protocol import thread_ids
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.frames import Signal
from hubbub.protocol.messages import Amendment, Draft, Message, Participant
from hubbub.protocol.operations import Speech

if TYPE_CHECKING:
    from hubbub.network.mods.alarms import Alarms

__all__ = ["ModHost"]


class ModHost(Host):
    """A `Host` (hubbub.mods.host). `run` runs work of the mod, and tells what it raises."""

    def __init__(
        self,
        kernel: Kernel,
        mod: Mod,
        alarms: Alarms,
        folder: Path | None,
        run: Callable[[Mod, Coroutine[Any, Any, None]], None],
        *,
        registry: Registry,
        parked: Callable[[str], Collection[str]],
    ):
        """`parked` tells which turns of an agent wait for a person."""
        facts = NetworkFacts(
            name=kernel.config.name,
            epoch=kernel.state.epoch,
            clock=kernel.clock,
            steady=kernel.steady,
            models=kernel.file.models,
            operations=registry.by_name,
        )
        super().__init__(mod.name, facts, kernel.pipeline, folder)
        self._kernel, self._mod, self._alarms, self._run = kernel, mod, alarms, run
        self._parked = parked

    # Time -------------------------------------------------------------------------------------

    def after(self, seconds: float, key: str) -> None:
        self._alarms.wait(self._mod, key, seconds)

    def at(self, when: float, key: str) -> None:
        self._alarms.set(self._mod, key, when)

    def cancel(self, key: str) -> None:
        self._alarms.cancel(self._mod, key)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self._run(self._mod, work)

    # Who and where ----------------------------------------------------------------------------

    def participant(self, id: str) -> Participant | None:
        known = self._kernel.state.get(id)
        return None if known is None else self._kernel.state.describe(known)

    def participants(self) -> Sequence[Participant]:
        state = self._kernel.state
        return [state.describe(known) for known in state.everybody()]

    def owns(self, participant: str) -> bool:
        kernel = self._kernel
        if self.kind_of(participant) == "agent":
            return False
        human = kernel.file.humans.get(participant)
        return kernel.config.auth == "open" or (human is not None and "owner" in human.roles)

    def thread(self, call: Calling, thread: str) -> str:
        return find_thread(_caller(call), thread).id

    def place(self, call: Calling, to: str) -> str:
        return self._kernel.router.thread(to, _caller(call).participant).id

    def _existing(self, thread: str) -> Thread:
        found = self._kernel.state.threads.get(thread)
        if found is None:
            raise OperationError(
                ErrorCode.UNKNOWN_THREAD, f"there is no thread {thread[:200]!r}; see list_threads"
            )
        return found

    def reads(self, participant: str, thread: str) -> bool:
        found = self._kernel.state.threads.get(thread)
        return found is not None and self._kernel.state.may_read(found, participant)

    def threads_of(self, participant: str) -> Collection[str]:
        state = self._kernel.state
        scopes = state.members.scopes(participant)
        return [thread.id for thread in state.threads.visible(participant, scopes)]

    def read_upto(self, participant: str, thread: str) -> int:
        return self._kernel.state.marks.get(participant, self._existing(thread).no)

    def latest(self, thread: str) -> Latest:
        found = self._kernel.state.threads.get(thread)
        return Latest(0, 0) if found is None else Latest(found.tseq, found.last_seq)

    def busy(self, agent: str) -> Busy:
        running = sum(turn.agent == agent for _, turn in self._kernel.state.turns)
        parked = self._parked(agent)
        return Busy(running, self._kernel.queues.depth(agent, parked))

    # The log ----------------------------------------------------------------------------------

    @property
    def head(self) -> int:
        return self._kernel.log.head

    async def _stored(self, reader: Calling | str, id: str, *, look: bool) -> Message:
        if not isinstance(reader, str):
            return await find_message(self._kernel, _caller(reader), id, look=look)
        message = await stored_message(self._kernel, id)
        if message is None or not self.reads(reader, message.thread_id):
            raise unknown_message(id)
        return message

    async def _page(self, thread: str, before: int | None, limit: int) -> Sequence[Message]:
        bodies = await self._kernel.store.thread_page(self._existing(thread).no, before, limit)
        return [Message.model_validate_json(body) for body in bodies]

    def _may_look(self, call: Calling, thread: str) -> bool:
        return _caller(call).may_look(self._kernel.state.threads.ensure(thread))

    async def log(self, after: int, limit: int) -> Sequence[Message]:
        events = await self._kernel.store.log(after, self._kernel.log.head, limit)
        return [Message.model_validate_json(event.body) for event in events]

    async def restore(self, call: Calling, messages: Sequence[Restored]) -> Sequence[int]:
        return await restored(self._kernel, _caller(call), messages)

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
        caller = _caller(call)
        found = find_thread(caller, thread)
        speech = Speech(mentions=tuple(mentions), cause=cause)
        sender = Sender(caller.participant, caller.kind)
        return self._kernel.router.draft(sender, found, content, speech, text_representation=text)

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
        thread = self._existing(message.thread_id)
        speech = Speech(cause=cause or message.id, outside=outside)
        draft = said_again(self._kernel, _caller(call), thread, message, content, text, speech)
        draft.amends = Amendment(message_id=message.id, kind=kind)
        return draft

    def notice(
        self, thread: str, text: str, details: dict[str, JsonValue], once: str, to: Iterable[str]
    ) -> None:
        found = self._existing(thread)
        self._kernel.writes.notice(found.id, text, self._told(details), self._once(once), to=to)

    def tell_owners(self, text: str, details: dict[str, JsonValue], once: str) -> None:
        tell_owners(self._kernel, text, self._told(details), self._once(once))

    def _told(self, details: dict[str, JsonValue]) -> dict[str, JsonValue]:
        return {"code": self._mod.name, "mod": self._mod.name, **details}

    def _once(self, key: str) -> str:
        return f"mod:{self._mod.name}:{key}"

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
        found, state = self._opened(thread, timer_of), self._kernel.state
        draft = opening(
            found,
            {"notice": self._mod.name, **self._told(details)},
            text,
            timer_of=timer_of,
            wakes=[who for who in wakes if state.may_read(found, who)],
            outside=outside,
        )
        cid, submit = self._once(once), self._kernel.writes.submit
        return await posted(lambda waiter: submit(Entry(draft, waiter, cid=cid, digest=0)))

    def _opened(self, thread: str, whose: str) -> Thread:
        """The thread; a direct one of this participant's is made when it is needed."""
        if whose in thread_ids.members_of(thread):
            return self._kernel.state.threads.ensure(thread)
        return self._existing(thread)

    def signal(
        self, thread: str, kind: str, data: JsonValue, *, to: Collection[str] | None = None
    ) -> None:
        found = self._existing(thread)
        signal = Signal(
            type=f"mod.{self._mod.name}",
            sender="hub",
            thread_id=found.id,
            data={"kind": kind, "data": data},
        )
        frame = signal.model_dump_json(exclude_none=True).encode()
        readers = self._kernel.state.readers(found, "")
        if to is None:
            self._kernel.fanout.send_ephemeral_to_readers(readers, frame)
        else:
            self._kernel.fanout.send_ephemeral(readers & set(to), frame)

    # Rows -------------------------------------------------------------------------------------

    async def rows(self, sql: str, *values: Value) -> Sequence[Row]:
        return await self._kernel.store.read(ModSelect(self._mod.name, sql, values))

    async def keep(self, statements: Sequence[Statement]) -> None:
        rows = ModRows(self._mod.name, tuple(statements))
        await self._kernel.log.write(lambda head: [rows])
        if rows.refused is not None:
            raise conflicted(self._mod.name, rows.refused)


def _caller(call: Calling) -> Caller:
    assert isinstance(call, Caller), "operations are called by the hub alone"
    return call
