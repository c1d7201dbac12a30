"""`KernelPort`, the kernel as a mod's host sees it, and the alarms of mods."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterable, Sequence
from functools import partial
from typing import Any

from hubbub.clock import Clock
from hubbub.errors import OperationError
from hubbub.mods.api import Mod
from hubbub.mods.host import AgentLoad, ImportedMessage, Latest, OutgoingMessage, ReadState, Row
from hubbub.mods.operation import Calling, Statement, Value
from hubbub.network.caller import OPERATOR, Caller
from hubbub.network.kernel import Kernel
from hubbub.network.log import CallbackWaiter, Entry
from hubbub.network.mods.failures import owners_of
from hubbub.network.queries import ModSelect
from hubbub.network.records import ModRows
from hubbub.network.routing import Sender
from hubbub.network.services.channels import new_channel
from hubbub.network.services.messages import find_message, stored_message, unknown_message
from hubbub.network.services.threads import find_thread
from hubbub.network.threads import Thread
from hubbub.network.timer import Timer
from hubbub.protocol import thread_ids
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Draft, Message, Participant
from hubbub.waiting import settle

__all__ = ["Alarms", "KernelPort", "restored"]


async def restored(kernel: Kernel, call: Caller, messages: Sequence[ImportedMessage]) -> list[int]:
    """Import messages; returns their positions once all are durable. Raises `OperationError` or
    `StoreUnavailable` for the first that is refused, after writing those before it."""
    for thread in dict.fromkeys(thread_ids.root(each.draft.thread_id) for each in messages):
        if thread_ids.kind_of(thread) == "channel":
            await _ensure_channel(kernel, call, thread.partition(".")[2])
    waiting: list[asyncio.Future[int]] = []
    refused: OperationError | None = None
    for draft, interaction, hop, once, digest in messages:
        position: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        try:
            kernel.router.check_content(draft.content, draft.text_representation)
            entry = Entry(draft, CallbackWaiter(partial(settle, position)), cid=once, digest=digest)
            await kernel.writes.restore(entry, interaction, hop)
        except OperationError as error:
            refused = error
            break
        waiting.append(position)
    existing = await asyncio.gather(*waiting, return_exceptions=True)
    for index, each in enumerate((*existing, refused)):
        if isinstance(each, OperationError):
            raise OperationError(each.code, each.message, details={**each.details, "index": index})
        if isinstance(each, BaseException):
            raise each
    return [each for each in existing if isinstance(each, int)]


async def _ensure_channel(kernel: Kernel, call: Caller, name: str) -> None:
    """Create the channel if it is missing, with the caller as its member. Raises `OperationError`
    at the limit of channels, and `StoreUnavailable`."""
    state = kernel.state
    if name in state.making:
        await kernel.log.write()  # wait for the outcome
    if name in state.channels:
        return
    members = [] if call.participant == OPERATOR else [call.participant]
    await kernel.writes.write(new_channel(kernel, name, "", members))


class KernelPort:
    """A `ModPort` (hubbub.mods.host). `run` runs work of the mod and reports its failures; `parked`
    returns the turns of an agent that wait for a person."""

    def __init__(
        self,
        kernel: Kernel,
        mod: Mod,
        alarms: Alarms,
        run: Callable[[Mod, Coroutine[Any, Any, None]], None],
        parked: Callable[[str], Collection[str]],
    ):
        self._kernel, self._mod, self._alarms = kernel, mod, alarms
        self._run, self._parked = run, parked

    @property
    def head(self) -> int:
        return self._kernel.log.head

    def alarm(self, key: str, moment: float | None, *, wait: bool = False) -> None:
        if moment is None:
            self._alarms.cancel(self._mod, key)
        elif wait:
            self._alarms.wait(self._mod, key, moment)
        else:
            self._alarms.set(self._mod, key, moment)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self._run(self._mod, work)

    # Participants and threads -----------------------------------------------------------------

    def describe(self, ids: Iterable[str] | None) -> Sequence[Participant]:
        state = self._kernel.state
        participants = (
            state.all_participants() if ids is None else filter(None, map(state.get, ids))
        )
        return list(map(state.describe, participants))

    def resolve(self, call: Calling, name: str, *, speaks: bool) -> str:
        caller = _caller(call)
        if speaks:
            return self._kernel.router.thread(name, caller.participant).id
        return find_thread(caller, name).id

    def standing(self, thread: str, participant: str | None) -> ReadState:
        state = self._kernel.state
        existing = state.threads.get(thread)
        if existing is None:
            return ReadState(Latest(0, 0))
        latest = Latest(existing.tseq, existing.last_seq)
        if participant is None:
            return ReadState(latest)
        read_upto = state.marks.get(participant, existing.no)
        return ReadState(latest, state.may_read(existing, participant), read_upto)

    def visible(self, participant: str) -> Collection[str]:
        state = self._kernel.state
        scopes = state.members.scopes(participant)
        return [thread.id for thread in state.threads.visible(participant, scopes)]

    def workload(self, agent: str) -> AgentLoad:
        running = sum(turn.agent == agent for _, turn in self._kernel.state.turns)
        return AgentLoad(running, self._kernel.queues.depth(agent, self._parked(agent)))

    def _existing(self, thread: str) -> Thread:
        existing = self._kernel.state.threads.get(thread)
        if existing is None:
            raise OperationError(
                ErrorCode.UNKNOWN_THREAD, f"no thread has the id {thread[:200]!r}; see list_threads"
            )
        return existing

    # Messages ---------------------------------------------------------------------------------

    async def find(self, reader: Calling | str, id: str, look: bool) -> Message:
        kernel = self._kernel
        if not isinstance(reader, str):
            return await find_message(kernel, _caller(reader), id, look=look)
        message = await stored_message(kernel, id)
        if message is None or not self.standing(message.thread_id, reader).reads:
            raise unknown_message(id)
        return message

    async def read(self, thread: str | None, edge: int | None, limit: int) -> Sequence[Message]:
        store = self._kernel.store
        if thread is not None:
            bodies = await store.thread_page(self._existing(thread).no, edge, limit)
        else:
            bodies = [each.body for each in await store.log(edge or 0, self.head, limit)]
        return [Message.model_validate_json(body) for body in bodies]

    async def show(self, messages: Sequence[Message], to: Calling | None) -> Sequence[Message]:
        if to is not None:
            caller, threads = _caller(to), self._kernel.state.threads
            messages = [m for m in messages if caller.may_look(threads.ensure(m.thread_id))]
        return await self._kernel.pipeline.shown(messages)

    def draft(self, call: Calling, said: OutgoingMessage, again: Message | None) -> Draft:
        kernel, caller = self._kernel, _caller(call)
        sender = Sender(caller.participant, caller.kind)
        if again is None:
            thread = find_thread(caller, said.thread)
        else:
            thread = self._existing(said.thread)
            if again.sent_by == caller.participant:
                participant = kernel.state.get(again.sender_id)
                assert participant is not None, "every sender is registered"
                sender = Sender(participant.id, participant.kind, caller.participant)
        _, content, text, speech = said
        return kernel.router.draft(sender, thread, content, speech, text_representation=text)

    async def post(self, draft: Draft, once: str) -> int:
        self._check_thread(draft)
        position: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        waiter = CallbackWaiter(partial(settle, position))
        later = self._kernel.writes.submit(Entry(draft, waiter, cid=once, digest=0))
        if later is not None:
            await later
        return await position

    def announce(self, draft: Draft, once: str) -> None:
        self._check_thread(draft)
        self._kernel.writes.announce(draft, once)

    def _check_thread(self, draft: Draft) -> None:
        """Raises `OperationError` if the thread does not exist, unless it is a direct thread with
        the hub or the timer's owner, which is created on demand."""
        members = thread_ids.members_of(draft.thread_id)
        if "hub" not in members and draft.timer_of not in members:
            self._existing(draft.thread_id)

    def owners(self) -> Sequence[str]:
        return owners_of(self._kernel)

    async def bring_in(self, call: Calling, messages: Sequence[ImportedMessage]) -> Sequence[int]:
        return await restored(self._kernel, _caller(call), messages)

    def send(self, thread: str, frame: bytes, to: Collection[str] | None) -> None:
        readers = self._kernel.state.readers(self._existing(thread), "")
        if to is None:
            self._kernel.fanout.send_ephemeral_to_readers(readers, frame)
        else:
            self._kernel.fanout.send_ephemeral(readers & set(to), frame)

    # Rows -------------------------------------------------------------------------------------

    async def select(self, sql: str, values: Sequence[Value]) -> Sequence[Row]:
        return await self._kernel.store.read(ModSelect(self._mod.name, sql, tuple(values)))

    async def write(self, statements: Sequence[Statement]) -> None:
        rows = ModRows(self._mod.name, tuple(statements))
        await self._kernel.log.write(rows)
        if rows.refused is not None:
            raise rows.conflict()


def _caller(call: Calling) -> Caller:
    assert isinstance(call, Caller), "only the hub calls operations"
    return call


Ring = Callable[[Mod, str], None]


class Alarms:
    """Calls `ring(mod, key)` at a time of day (`clock`) or after a delay (`steady`)."""

    def __init__(self, clock: Clock, steady: Clock, ring: Ring):
        self._steady = steady
        self._moments, self._waits = _Calls(clock, ring), _Calls(steady, ring)

    def set(self, mod: Mod, key: str, when: float) -> None:
        """Set the alarm under the key, replacing an earlier one."""
        self._moments.set(mod, key, when)

    def wait(self, mod: Mod, key: str, seconds: float) -> None:
        """Set the delay under the key, replacing an earlier one."""
        self._waits.set(mod, key, self._steady.now() + seconds)

    def cancel(self, mod: Mod, key: str) -> None:
        """Cancel the alarm and the delay under the key."""
        self._moments.cancel(mod, key)
        self._waits.cancel(mod, key)

    def look(self) -> None:
        """Check the time now, for clocks that are moved by hand."""
        self._moments.timer.look()
        self._waits.timer.look()

    def stop(self) -> None:
        """Make no more calls."""
        self._moments.stop()
        self._waits.stop()


class _Calls:
    """The alarms of one clock."""

    def __init__(self, clock: Clock, ring: Ring):
        self._ring = ring
        self._due: dict[tuple[Mod, str], float] = {}
        self.timer = Timer(clock, self._look)

    def set(self, mod: Mod, key: str, when: float) -> None:
        self._due[mod, key] = when
        self.timer.at(when)

    def cancel(self, mod: Mod, key: str) -> None:
        self._due.pop((mod, key), None)

    def stop(self) -> None:
        self._due.clear()
        self.timer.stop()

    def _look(self, now: float) -> float | None:
        due = (
            sorted(
                ((when, place) for place, when in self._due.items() if when <= now),
                key=lambda each: (each[0], each[1][1]),  # mods have no order among themselves
            )
            if self._due
            else []
        )
        for when, place in due:
            if self._due.get(place) == when:  # else an earlier call changed it
                del self._due[place]
                self._ring(*place)
        return min(self._due.values(), default=None)
