"""How far each participant has read each thread, and what of that is on its way to the store."""

from __future__ import annotations

from collections.abc import Iterable

from hubbub.network.stored import StoredMark

__all__ = ["ReadMarks"]


class ReadMarks:
    """Read marks by participant and thread number; a thread without one is unread from its start.

    A change is announced while it is on its way. What is told is what the store has; what is
    compared with is what was asked for last.
    """

    def __init__(self, stored: Iterable[StoredMark] = ()):
        self._marks: dict[str, dict[int, int]] = {}
        self._announced: dict[tuple[str, int], list[int]] = {}
        for mark in stored:
            self.put(*mark)

    def get(self, participant: str, thread_no: int) -> int:
        """The position (tseq) up to which the participant has read the thread."""
        marks = self._marks.get(participant)
        return 0 if marks is None else marks.get(thread_no, 0)

    def put(self, participant: str, thread_no: int, tseq: int) -> None:
        """The store has this mark. Marks are stored in the order of their announcement."""
        self._marks.setdefault(participant, {})[thread_no] = tseq

    def wanted(self, participant: str, thread_no: int) -> int:
        """The mark that there will be when everything announced is stored."""
        announced = self._announced.get((participant, thread_no))
        return announced[-1] if announced else self.get(participant, thread_no)

    def announce(self, participant: str, thread_no: int, tseq: int) -> None:
        """The mark is on its way to the store; `withdraw` follows."""
        self._announced.setdefault((participant, thread_no), []).append(tseq)

    def withdraw(self, participant: str, thread_no: int, tseq: int) -> None:
        """An announced mark is not on its way any more."""
        announced = self._announced[participant, thread_no]
        announced.remove(tseq)
        if not announced:
            del self._announced[participant, thread_no]

    def is_announced(self, participant: str, thread_no: int) -> bool:
        """Whether a mark is on its way."""
        return (participant, thread_no) in self._announced

    def forget(self, participant: str) -> None:
        """Take back the marks of a participant who could not be stored."""
        self._marks.pop(participant, None)
