"""What participants have under keys, and what of it is on its way to the store: how far they have
read which thread, and what they remember.

A change is announced while it is on its way. What is told is what the store has; what is compared
with, and what counts for a limit, is what there will be when everything announced is stored.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Set
from typing import Generic, TypeVar

from hubbub.network.stored import StoredKey, StoredMark

__all__ = ["MemoryKeys", "ReadMarks"]

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class _Announced(Generic[K, V]):
    """Values by participant and key."""

    def __init__(self) -> None:
        self._stored: dict[str, dict[K, V]] = {}
        self._announced: dict[tuple[str, K], list[V]] = {}

    def put(self, participant: str, key: K, value: V) -> None:
        """The store has this. Changes are stored in the order of their announcement."""
        self._stored.setdefault(participant, {})[key] = value

    def announce(self, participant: str, key: K, value: V) -> None:
        """The change is on its way to the store; `withdraw` follows."""
        self._announced.setdefault((participant, key), []).append(value)

    def withdraw(self, participant: str, key: K, value: V) -> None:
        """An announced change is not on its way any more."""
        announced = self._announced[participant, key]
        announced.remove(value)
        if not announced:
            del self._announced[participant, key]


class ReadMarks(_Announced[int, int]):
    """Positions (tseq) by participant and thread number; a thread without one is unread from its
    start."""

    def __init__(self, stored: Iterable[StoredMark] = ()):
        super().__init__()
        for mark in stored:
            self.put(*mark)

    def get(self, participant: str, thread_no: int) -> int:
        """The position (tseq) up to which the participant has read the thread."""
        marks = self._stored.get(participant)
        return 0 if marks is None else marks.get(thread_no, 0)

    def wanted(self, participant: str, thread_no: int) -> int:
        """The mark that there will be when everything announced is stored."""
        announced = self._announced.get((participant, thread_no))
        return announced[-1] if announced else self.get(participant, thread_no)

    def is_announced(self, participant: str, thread_no: int) -> bool:
        """Whether a mark is on its way."""
        return (participant, thread_no) in self._announced

    def forget(self, participant: str) -> None:
        """Take back the marks of a participant who could not be stored."""
        self._stored.pop(participant, None)


class MemoryKeys(_Announced[str, bool]):
    """Keys under which participants remember something; the values are the store's alone."""

    def __init__(self, stored: Iterable[StoredKey] = ()):
        super().__init__()
        for participant, key in stored:
            self.put(participant, key, True)

    def put(self, participant: str, key: str, value: bool) -> None:
        super().put(participant, key, value)
        if not value:
            del self._stored[participant][key]

    def of(self, participant: str) -> Set[str]:
        """The keys that the participant will have when everything announced is stored."""
        known = dict(self._stored.get(participant, {}))
        known |= {key: of[-1] for (who, key), of in self._announced.items() if who == participant}
        return {key for key, there in known.items() if there}

    def owners(self, prefix: str) -> list[str]:
        """Who has a stored key that begins like this."""
        every = self._stored.items()
        return [who for who, keys in every if any(key.startswith(prefix) for key in keys)]
