"""Reading threads."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, takewhile

from hubbub.errors import OperationError
from hubbub.mods.operation import operation
from hubbub.network.caller import Caller
from hubbub.network.service import Service
from hubbub.network.threads import Thread
from hubbub.protocol import thread_ids
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Message, ThreadSummary
from hubbub.protocol.operations import ListThreads, ReadThread, ThreadPage, Threads

__all__ = ["ThreadService", "find_thread"]

ROOM = 256 * 1024
"""Bytes that the messages of a page may take, about; the store's `PAGE_BYTES`."""


class ThreadService(Service):
    """Reading threads."""

    @operation()
    async def list_threads(self, call: Caller, args: ListThreads) -> Threads:
        """List your threads, most recently active first, each with its last message; `before` pages
        back in time."""
        state, me = self.state, call.participant
        visible = state.threads.visible(me, state.members.scopes(me))
        spoken = [
            t for t in visible if t.tseq and (args.before is None or t.last_seq < args.before)
        ]
        latest = sorted(spoken, key=lambda thread: thread.last_seq, reverse=True)
        page = latest[: args.limit]
        tails = await self.store.tails([t.no for t in page], self.kernel.log.head, 1)
        last = await self._shown([tails[t.no][-1] for t in page if tails.get(t.no)])
        by_id = {message.thread_id: message for message in last}
        told = [_summary(t, by_id[t.id], state.marks.get(me, t.no)) for t in page if t.id in by_id]
        return Threads(threads=tuple(told), more=len(latest) > len(page))

    async def _shown(self, bodies: Sequence[bytes]) -> Sequence[Message]:
        messages = [Message.model_validate_json(body) for body in bodies]
        return await self.kernel.pipeline.shown(messages)

    @operation()
    async def read_thread(self, call: Caller, args: ReadThread) -> ThreadPage:
        """Read the messages of one of your threads, oldest first; `before` pages back in time."""
        thread = find_thread(call, args.thread, look=True)
        bodies = await self.store.thread_page(thread.no, args.before, args.limit)
        messages = _fitting(await self._shown(bodies))
        more = bool(messages) and messages[0].tseq > 1  # positions in a thread are dense
        return ThreadPage(thread_id=thread.id, messages=tuple(messages), more=more)


def _summary(thread: Thread, last: Message, read: int) -> ThreadSummary:
    return ThreadSummary(
        id=thread.id,
        type=thread.type,
        head=last.tseq,
        last_seq=last.seq,
        read=read,
        messages=(last,),
    )


def _fitting(messages: Sequence[Message]) -> Sequence[Message]:
    """As many of the last ones as a page has room for; one at least. The store sees to that with
    what the log has: in an edited message more may be shown."""
    if all(message.amended is None for message in messages):
        return messages
    sizes = (len(message.model_dump_json()) for message in reversed(messages))
    fitting = sum(1 for _ in takewhile(lambda size: size <= ROOM, accumulate(sizes)))
    return messages[-max(1, fitting) :]


def find_thread(call: Caller, name: str, *, look: bool = False) -> Thread:
    """The thread that `name` means, in either form, or that with a participant of this name.

    Raises `OperationError` if there is none that the caller reads, or with `look` may look into.
    """
    state = call.state
    canonical = thread_ids.canonical(name, call.participant)
    if canonical is None and state.knows(name) and name != call.participant:
        canonical = thread_ids.direct((name, call.participant))
    if canonical is None:
        raise OperationError(
            ErrorCode.UNKNOWN_THREAD, f"thread: {name[:200]!r} is no thread id; see list_threads"
        )
    thread = state.threads.get(canonical)
    if look and thread is not None and call.may_look(thread):
        return thread
    return state.thread_for(canonical, call.participant)
