"""Reading threads."""

from __future__ import annotations

from collections.abc import Sequence

from hubbub.errors import OperationError
from hubbub.mods.operation import operation
from hubbub.network.caller import Caller
from hubbub.network.threads import Thread
from hubbub.protocol import thread_ids
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Message, ThreadSummary
from hubbub.protocol.operations import ListThreads, ReadThread, ThreadPage, Threads

__all__ = ["find_thread", "list_threads", "read_thread"]


@operation()
async def list_threads(call: Caller, args: ListThreads) -> Threads:
    """List your threads, most recently active first, each with its last message; `before` pages
    back in time."""
    state, me = call.hub.state, call.participant
    visible = state.threads.visible(me, state.members.scopes(me))
    spoken = [t for t in visible if t.tseq and (args.before is None or t.last_seq < args.before)]
    latest = sorted(spoken, key=lambda thread: thread.last_seq, reverse=True)
    page = latest[: args.limit]
    tails = await call.hub.store.tails([t.no for t in page], call.hub.log.head, 1)
    told = [_summary(t, tails[t.no], state.marks.get(me, t.no)) for t in page if tails.get(t.no)]
    return Threads(threads=tuple(told), more=len(latest) > len(page))


def _summary(thread: Thread, bodies: Sequence[bytes], read: int) -> ThreadSummary:
    messages = tuple(Message.model_validate_json(body) for body in bodies)
    return ThreadSummary(
        id=thread.id,
        type=thread.type,
        head=messages[-1].tseq,
        last_seq=messages[-1].seq,
        read=read,
        messages=messages,
    )


@operation()
async def read_thread(call: Caller, args: ReadThread) -> ThreadPage:
    """Read the messages of one of your threads, oldest first; `before` pages back in time."""
    thread = find_thread(call, args.thread, look=True)
    bodies = await call.hub.store.thread_page(thread.no, args.before, args.limit)
    messages = [Message.model_validate_json(body) for body in bodies]
    more = bool(messages) and messages[0].tseq > 1  # positions in a thread are dense
    return ThreadPage(thread_id=thread.id, messages=tuple(messages), more=more)


def find_thread(call: Caller, name: str, *, look: bool = False) -> Thread:
    """The thread that `name` means, in either form, or that with a participant of this name.

    Raises `OperationError` if there is none that the caller reads, or with `look` may look into.
    """
    state = call.hub.state
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
