"""Read markers and memory keys of participants, with the changes that are in flight.

A change is announced while it is being stored. Reads return the stored values; comparisons and
limits use the values after all announced changes.
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
        """Set a stored value. Changes are stored in the order they were announced."""
        self._stored.setdefault(participant, {})[key] = value

    def announce(self, participant: str, key: K, value: V) -> None:
        """Add a change in flight; `withdraw` must follow."""
        self._announced.setdefault((participant, key), []).append(value)

    def withdraw(self, participant: str, key: K, value: V) -> None:
        """Remove an announced change that is no longer in flight."""
        announced = self._announced[participant, key]
        announced.remove(value)
        if not announced:
            del self._announced[participant, key]


class ReadMarks(_Announced[int, int]):
    """Positions (tseq) by participant and thread number; without one the whole thread is unread."""

    def __init__(self, stored: Iterable[StoredMark] = ()):
        super().__init__()
        for mark in stored:
            self.put(*mark)

    def get(self, participant: str, thread_no: int) -> int:
        """The position (tseq) up to which the participant has read the thread."""
        marks = self._stored.get(participant)
        return 0 if marks is None else marks.get(thread_no, 0)

    def latest(self, participant: str, thread_no: int) -> int:
        """The marker after all announced changes."""
        announced = self._announced.get((participant, thread_no))
        return announced[-1] if announced else self.get(participant, thread_no)

    def is_announced(self, participant: str, thread_no: int) -> bool:
        """Whether a change of the marker is in flight."""
        return (participant, thread_no) in self._announced

    def forget(self, participant: str) -> None:
        """Remove the markers of a participant that could not be stored."""
        self._stored.pop(participant, None)


class MemoryKeys(_Announced[str, bool]):
    """Keys of participants' memories; only the store has the values."""

    def __init__(self, stored: Iterable[StoredKey] = ()):
        super().__init__()
        for participant, key in stored:
            self.put(participant, key, True)

    def put(self, participant: str, key: str, value: bool) -> None:
        super().put(participant, key, value)
        if not value:
            del self._stored[participant][key]

    def of(self, participant: str) -> Set[str]:
        """The participant's keys after all announced changes."""
        keys = dict(self._stored.get(participant, {}))
        keys |= {key: of[-1] for (who, key), of in self._announced.items() if who == participant}
        return {key for key, exists in keys.items() if exists}

    def owners(self, prefix: str) -> list[str]:
        """The participants with a stored key that starts with `prefix`."""
        every = self._stored.items()
        return [who for who, keys in every if any(key.startswith(prefix) for key in keys)]
