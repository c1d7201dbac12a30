"""Under which keys participants remember something; the values are the store's alone."""

from __future__ import annotations

from collections.abc import Iterable, Set

from hubbub.network.stored import StoredKey

__all__ = ["MemoryKeys"]


class MemoryKeys:
    """The keys by participant, and what of them is on its way to the store.

    A change is announced, and then settled when the store has it, or given up. What counts for a
    limit is what there will be when everything announced is stored.
    """

    def __init__(self, stored: Iterable[StoredKey] = ()):
        self._stored: dict[str, set[str]] = {}
        self._announced: dict[str, dict[str, list[bool]]] = {}
        for participant, key in stored:
            self._put(participant, key, True)

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
        """The key is on its way to be there, or not: `settle` or `give_up` follows."""
        self._announced.setdefault(participant, {}).setdefault(key, []).append(there)

    def settle(self, participant: str, key: str, there: bool) -> None:
        """An announced change is stored. Changes are stored in the order of their announcement."""
        self.give_up(participant, key, there)
        self._put(participant, key, there)

    def give_up(self, participant: str, key: str, there: bool) -> None:
        """An announced change could not be stored."""
        announced = self._announced[participant]
        announced[key].remove(there)
        if not announced[key]:
            del announced[key]
        if not announced:
            del self._announced[participant]

    def _put(self, participant: str, key: str, there: bool) -> None:
        keys = self._stored.setdefault(participant, set())
        if there:
            keys.add(key)
        else:
            keys.discard(key)
