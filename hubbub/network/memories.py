"""Under which keys participants remember something; the values are the store's alone."""

from __future__ import annotations

from collections.abc import Iterable, Set

from hubbub.network.stored import StoredKey

__all__ = ["MemoryKeys"]


class MemoryKeys:
    """The keys by participant, and what of them is on its way to the store.

    A change is announced while it is on its way. What counts for a limit is what there will be when
    everything announced is stored.
    """

    def __init__(self, stored: Iterable[StoredKey] = ()):
        self._stored: dict[str, set[str]] = {}
        self._announced: dict[str, dict[str, list[bool]]] = {}
        for participant, key in stored:
            self.put(participant, key, True)

    def of(self, participant: str) -> Set[str]:
        """The keys that the participant will have when everything announced is stored."""
        wanted = set(self._stored.get(participant, ()))
        for key, changes in self._announced.get(participant, {}).items():
            if changes[-1]:
                wanted.add(key)
            else:
                wanted.discard(key)
        return wanted

    def announce(self, participant: str, key: str, there: bool) -> None:
        """The key is on its way to be there, or not; `withdraw` follows."""
        self._announced.setdefault(participant, {}).setdefault(key, []).append(there)

    def withdraw(self, participant: str, key: str, there: bool) -> None:
        """An announced change is not on its way any more."""
        announced = self._announced[participant]
        announced[key].remove(there)
        if not announced[key]:
            del announced[key]
        if not announced:
            del self._announced[participant]

    def put(self, participant: str, key: str, there: bool) -> None:
        """The store has the key, or not. Changes are stored in the order of their announcement."""
        keys = self._stored.setdefault(participant, set())
        if there:
            keys.add(key)
        else:
            keys.discard(key)
