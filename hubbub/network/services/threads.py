"""Reading threads, and read markers."""

from __future__ import annotations

from collections.abc import Sequence

from hubbub.errors import OperationError
from hubbub.mods.operation import Commit, bad_request, operation
from hubbub.network.caller import Caller
from hubbub.network.kernel import Kernel
from hubbub.network.records import Record
from hubbub.network.service import Service
from hubbub.network.stored import StoredMark
from hubbub.network.threads import Thread
from hubbub.protocol import thread_ids
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.frames import Signal
from hubbub.protocol.messages import Message, ThreadSummary, last_within
from hubbub.protocol.operations import (
    Done,
    ListThreads,
    MarkRead,
    MarkUnread,
    ReadThread,
    ThreadList,
    ThreadPage,
)

__all__ = ["ThreadService", "find_thread", "markers_at_end"]

ROOM = 256 * 1024
"""Approximate limit for the bytes of a page's messages; the store's `PAGE_BYTES`."""
MARK = 0.1
"""A marker's cost against the rate limit: scrolling sets many."""


class ThreadService(Service):
    """Reads threads, and keeps a participant's read markers in sync across its connections."""

    @operation()
    async def list_threads(self, call: Caller, args: ListThreads) -> ThreadList:
        """List your threads, most recently active first, each with its last message; `before` pages
        back in time."""
        state, me = self.state, call.participant
        visible = state.threads.visible(me, state.members.scopes(me))
        active = [
            t
            for t in visible
            if t.tseq
            and (args.before is None or t.last_seq < args.before)
            and not (args.without_replies and thread_ids.parent(t.id) is not None)
        ]
        latest = sorted(active, key=lambda thread: thread.last_seq, reverse=True)
        page = latest[: args.limit]
        tails = await self.store.tails([t.no for t in page], self.kernel.log.head, 1)
        last = await self._shown([tails[t.no][-1] for t in page if tails.get(t.no)])
        by_id = {message.thread_id: message for message in last}
        threads = (
            _summary(t, by_id[t.id], state.marks.get(me, t.no)) for t in page if t.id in by_id
        )
        return ThreadList(threads=tuple(threads), more=len(latest) > len(page))

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

    # Read markers -----------------------------------------------------------------------------

    @operation(permission="write", tool=False, idempotent=True, cost=MARK, output=Done)
    def mark_read(self, call: Caller, args: MarkRead) -> Commit[Record] | Done:
        """Mark a thread as read up to a position (tseq); a marker further on stays."""
        thread = self._thread(call, args.thread, "upto", args.upto)
        return self._mark(call, thread, max(args.upto, self._latest_marker(call, thread)))

    @operation(permission="write", tool=False, idempotent=True, cost=MARK, output=Done)
    def mark_unread(self, call: Caller, args: MarkUnread) -> Commit[Record] | Done:
        """Mark a thread as unread from a position (tseq) on, and as read before it."""
        thread = self._thread(call, args.thread, "since", args.since)
        return self._mark(call, thread, args.since - 1)

    def _thread(self, call: Caller, name: str, field: str, tseq: int) -> Thread:
        """The thread. Raises `OperationError` unless it has a message at `tseq`."""
        thread = find_thread(call, name)
        head = self.kernel.log.position(thread)
        if tseq > head:
            text = f"{field}: the last message of the thread has the position {head}, not {tseq}"
            raise bad_request(text)
        return thread

    def _latest_marker(self, call: Caller, thread: Thread) -> int:
        return self.state.marks.latest(call.participant, thread.no)

    def _mark(self, call: Caller, thread: Thread, tseq: int) -> Commit[Record] | Done:
        marks, me, number = self.state.marks, call.participant, thread.no
        if tseq == self._latest_marker(call, thread) and not marks.is_announced(me, number):
            return Done()
        marks.announce(me, number, tseq)

        def applied() -> None:
            marks.put(me, number, tseq)
            self._notify_others(call, thread, tseq)

        mark = StoredMark(me, number, tseq)
        return Commit([mark], Done(), applied, lambda: marks.withdraw(me, number, tseq))

    def _notify_others(self, call: Caller, thread: Thread, tseq: int) -> None:
        others = [s for s in self.kernel.fanout.of(call.participant) if s.caller is not call]
        if others:
            signal = Signal(
                type="read", thread_id=thread.id, sender=call.participant, data={"upto": tseq}
            )
            frame = signal.encoded()
            for session in others:
                session.send_ephemeral(frame)


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
    """The last messages that fit on a page, at least one. The store already limits the page by the
    logged sizes, but an edited message can be larger than its original."""
    if all(message.amended is None for message in messages):
        return messages
    return last_within(messages, ROOM)


def find_thread(call: Caller, name: str, *, look: bool = False) -> Thread:
    """The thread for `name`: a thread id in either form, or the name of a participant.

    Raises `OperationError` unless the caller reads it or, with `look`, may inspect it.
    """
    state = call.state
    canonical = thread_ids.canonical(name, call.participant)
    if canonical is None and state.knows(name) and name != call.participant:
        canonical = thread_ids.direct((name, call.participant))
    if canonical is None:
        raise OperationError(
            ErrorCode.UNKNOWN_THREAD, f"thread: {name[:200]!r} is not a thread id; see list_threads"
        )
    thread = state.threads.get(canonical)
    if look and thread is not None and call.may_look(thread):
        return thread
    return state.thread_for(canonical, call.participant)


def markers_at_end(kernel: Kernel, participant: str, scope: int) -> Sequence[StoredMark]:
    """Read markers at the current end of each thread in a scope."""
    state, position = kernel.state, kernel.log.position
    ends = ((thread.no, position(thread)) for thread in state.threads.in_scope(scope))
    return [StoredMark(participant, number, tseq) for number, tseq in ends if tseq]
