"""Tasks, polls, files and documents that a client has come across, for completion. Pure."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["MOST", "Seen"]

MOST = 200
"""Things of a kind that are remembered."""


class Seen:
    """Ids and what they are called, by the letter that ids of the kind begin with."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, str]] = {}
        self.options: dict[str, tuple[str, ...]] = {}
        """What can be voted for, by poll."""

    def note(self, things: Iterable[tuple[str, str]]) -> None:
        """These are there: `t3`, and what it is called."""
        for id, name in things:
            known = self._known.setdefault(id[:1], {})
            known[id] = name
            if len(known) > MOST:
                del known[next(iter(known))]

    def offer(self, poll: str, options: tuple[str, ...]) -> None:
        """What can be voted for in a poll."""
        self.options[poll] = options
        if len(self.options) > MOST:
            del self.options[next(iter(self.options))]

    def of(self, kind: str) -> list[tuple[str, str]]:
        """Those of a kind (t, p, f, d, b), the latest first."""
        known = self._known.get(kind, {})
        return sorted(known.items(), key=lambda item: -int(item[0][1:]))
