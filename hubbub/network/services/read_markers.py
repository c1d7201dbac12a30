"""Read marks: what a participant has read, told to its other connections."""

from __future__ import annotations

from collections.abc import Sequence

from hubbub.errors import OperationError
from hubbub.mods.operation import Commit, operation
from hubbub.network.caller import Caller
from hubbub.network.kernel import Kernel
from hubbub.network.records import Record
from hubbub.network.service import Service
from hubbub.network.services.threads import find_thread
from hubbub.network.stored import StoredMark
from hubbub.network.threads import Thread
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.frames import Signal
from hubbub.protocol.operations import Done, MarkRead, MarkUnread

__all__ = ["ReadMarkerService", "said_before"]

MARK = 0.1
"""What a mark costs of the rate limit: whoever scrolls makes many."""


class ReadMarkerService(Service):
    """How far participants have read."""

    @operation(permission="write", tool=False, idempotent=True, cost=MARK, output=Done)
    def mark_read(self, call: Caller, args: MarkRead) -> Commit[Record] | Done:
        """Mark a thread as read up to a position (tseq); what is read further already stays so."""
        thread = self._thread(call, args.thread, "upto", args.upto)
        return self._mark(call, thread, max(args.upto, self._wanted(call, thread)))

    @operation(permission="write", tool=False, idempotent=True, cost=MARK, output=Done)
    def mark_unread(self, call: Caller, args: MarkUnread) -> Commit[Record] | Done:
        """Mark a thread as unread from a position (tseq) on, and as read up to there."""
        thread = self._thread(call, args.thread, "since", args.since)
        return self._mark(call, thread, args.since - 1)

    def _thread(self, call: Caller, name: str, field: str, tseq: int) -> Thread:
        """The thread, if it has a message at `tseq`. Raises `OperationError`."""
        thread = find_thread(call, name)
        head = self.kernel.log.position(thread)
        if tseq > head:
            text = f"{field}: the last message of the thread has the position {head}, not {tseq}"
            raise OperationError(ErrorCode.BAD_REQUEST, text)
        return thread

    def _wanted(self, call: Caller, thread: Thread) -> int:
        return self.state.marks.wanted(call.participant, thread.no)

    def _mark(self, call: Caller, thread: Thread, tseq: int) -> Commit[Record] | Done:
        marks, me, number = self.state.marks, call.participant, thread.no
        if tseq == self._wanted(call, thread) and not marks.is_announced(me, number):
            return Done()
        marks.announce(me, number, tseq)

        def applied() -> None:
            marks.put(me, number, tseq)
            self._tell_others(call, thread, tseq)

        mark = StoredMark(me, number, tseq)
        return Commit([mark], Done(), applied, lambda: marks.withdraw(me, number, tseq))

    def _tell_others(self, call: Caller, thread: Thread, tseq: int) -> None:
        others = [s for s in self.kernel.fanout.of(call.participant) if s.caller is not call]
        if others:
            signal = Signal(
                type="read", thread_id=thread.id, sender=call.participant, data={"upto": tseq}
            )
            frame = signal.encoded()
            for session in others:
                session.send_ephemeral(frame)


def said_before(kernel: Kernel, participant: str, scope: int) -> Sequence[StoredMark]:
    """Marks for all that was said in a scope by now."""
    state, position = kernel.state, kernel.log.position
    found = ((thread.no, position(thread)) for thread in state.threads.in_scope(scope))
    return [StoredMark(participant, number, tseq) for number, tseq in found if tseq]
