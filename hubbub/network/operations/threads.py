"""Reading threads."""

from __future__ import annotations

from collections.abc import Sequence

from hubbub.errors import OperationError
from hubbub.mods.operation import operation
from hubbub.network.caller import OPERATOR, Caller
from hubbub.network.threads import Thread
from hubbub.protocol import thread_ids
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Message, ThreadSummary
from hubbub.protocol.operations import ListThreads, ReadThread, ThreadPage, Threads

__all__ = ["list_threads", "read_thread"]


@operation()
async def list_threads(call: Caller, args: ListThreads) -> Threads:
    """List your threads, most recently active first, each with its last message."""
    state = call.hub.state
    visible = state.threads.visible(call.participant, state.members.scopes(call.participant))
    latest = sorted(visible, key=lambda t: t.last_seq, reverse=True)[: args.limit]
    tails = await call.hub.store.tails([t.no for t in latest if t.tseq], call.hub.log.head, 1)
    return Threads(threads=tuple(_summary(t, tails[t.no]) for t in latest if tails.get(t.no)))


def _summary(thread: Thread, bodies: Sequence[bytes]) -> ThreadSummary:
    messages = tuple(Message.model_validate_json(body) for body in bodies)
    return ThreadSummary(
        id=thread.id,
        type=thread.type,
        head=messages[-1].tseq,
        last_seq=messages[-1].seq,
        messages=messages,
    )


@operation()
async def read_thread(call: Caller, args: ReadThread) -> ThreadPage:
    """Read the messages of one of your threads, oldest first; `before` pages back in time."""
    thread = _find(call, args.thread)
    bodies = await call.hub.store.thread_page(thread.no, args.before, args.limit)
    messages = [Message.model_validate_json(body) for body in bodies]
    more = bool(messages) and messages[0].tseq > 1  # positions in a thread are dense
    return ThreadPage(thread_id=thread.id, messages=tuple(messages), more=more)


def _find(call: Caller, name: str) -> Thread:
    state = call.hub.state
    canonical = thread_ids.canonical(name, call.participant)
    if canonical is None and state.knows(name) and name != call.participant:
        canonical = thread_ids.direct((name, call.participant))
    if canonical is None:
        raise OperationError(
            ErrorCode.UNKNOWN_THREAD, f"thread: {name[:200]!r} is no thread id; see list_threads"
        )
    thread = state.threads.get(canonical)
    if call.participant == OPERATOR and thread is not None:
        return thread
    return state.thread_for(canonical, call.participant)
