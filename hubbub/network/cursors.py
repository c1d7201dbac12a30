"""Durable cursors: what each participant has acknowledged, and what people have read by saying
something themselves; written along with other commits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from hubbub.network.log import Change, Entry, Log
from hubbub.network.records import CursorMoved, Record, WakesSettled
from hubbub.network.state import NetworkState
from hubbub.network.stored import StoredMark
from hubbub.network.threads import Thread
from hubbub.protocol.messages import History

__all__ = ["Cursors"]

WRITE_AFTER_S = 1.0
"""Acknowledgements gather this long: losing some means only that events are sent again."""


class Cursors:
    """Remembers acknowledgements and writes them now and then."""

    def __init__(self, state: NetworkState, log: Log, written: Callable[[Mapping[str, int]], None]):
        """`written` is called with the cursors that have moved, when they are durable."""
        self._state, self._log, self._written = state, log, written
        self._moved: dict[str, int] = {}
        self._settled: dict[str, int] = {}
        self._spoke: set[tuple[str, int]] = set()
        """Whose marks have moved by their own words, and in which threads."""
        self._timer: asyncio.TimerHandle | None = None

    def move(self, participant: str, seq: int, *, settles_wakes: bool) -> None:
        """The participant has everything up to `seq`.

        `settles_wakes`: it does not record turns, so that having a wake is having dealt with it.
        """
        known = self._state.get(participant)
        if known is None or (seq <= known.cursor and not settles_wakes):
            return
        known.cursor = max(known.cursor, seq)
        self._moved[participant] = known.cursor
        if settles_wakes:
            self._settled[participant] = max(seq, self._settled.get(participant, 0))
        self._write_later()

    def _spoke_at(self, participant: str, thread: Thread, tseq: int) -> None:
        """The participant has written the message at `tseq`: who had read all before has read it.

        Losing this means only that own words count as unread until the thread is looked at.
        """
        marks = self._state.marks
        if marks.is_announced(participant, thread.no):
            return  # the mark that is on its way counts
        if marks.get(participant, thread.no) == tseq - 1:
            marks.put(participant, thread.no, tseq)
            self._spoke.add((participant, thread.no))
            self._write_later()

    def committed(self, entries: Sequence[Entry]) -> None:
        """These entries are durable: people have read what they have said."""
        for entry in entries:
            draft = entry.draft
            if draft.sender_kind == "human" and not isinstance(draft.purpose, History):
                self._spoke_at(draft.sender_id, entry.thread, entry.tseq)

    def _write_later(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(WRITE_AFTER_S, self.flush)

    def flush(self) -> None:
        """Hand what has gathered to the log."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._moved and not self._spoke:
            return
        moved, self._moved = self._moved, {}
        settled, self._settled = self._settled, {}
        spoke, self._spoke = self._spoke, set()

        def records(head: int) -> Sequence[Record]:
            made: list[Record] = [CursorMoved(name, seq) for name, seq in moved.items()]
            made += [WakesSettled(name, seq) for name, seq in settled.items()]
            marks = self._state.marks
            made += [StoredMark(name, no, marks.get(name, no)) for name, no in sorted(spoke)]
            return made

        def done(error: Exception | None) -> None:
            if error is not None:
                # Kept in memory: the next acknowledgement writes it again.
                self._moved = {**moved, **self._moved}
                self._settled = {**settled, **self._settled}
                self._spoke |= spoke
            else:
                self._written(moved)

        self._log.change(Change(records, done))
