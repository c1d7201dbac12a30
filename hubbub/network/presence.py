"""Who is connected, and what changed since somebody last asked."""

from __future__ import annotations

__all__ = ["Presence"]


class Presence:
    """Counts the sockets of each participant."""

    def __init__(self) -> None:
        self.online: dict[str, int] = {}
        """Who is connected, with how many sockets."""
        self._told: set[str] = set()
        self._touched: set[str] = set()

    def __contains__(self, participant: str) -> bool:
        return participant in self.online

    def __len__(self) -> int:
        return len(self.online)

    def join(self, participant: str) -> None:
        """One more socket of the participant is ready."""
        self.online[participant] = self.online.get(participant, 0) + 1
        self._touched.add(participant)

    def leave(self, participant: str) -> None:
        """One of its sockets is gone."""
        left = self.online[participant] - 1
        if left:
            self.online[participant] = left
        else:
            del self.online[participant]
        self._touched.add(participant)

    def changes(self) -> tuple[list[str], list[str]]:
        """Who came and who went since the last call. Who went and came back did neither."""
        came = sorted(p for p in self._touched if p in self.online and p not in self._told)
        went = sorted(p for p in self._touched if p not in self.online and p in self._told)
        self._told.update(came)
        self._told.difference_update(went)
        self._touched.clear()
        return came, went
