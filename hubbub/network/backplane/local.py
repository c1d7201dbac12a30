"""The backplane of a hub with one node: what is announced is handled on the spot."""

from __future__ import annotations

from collections.abc import Sequence

from hubbub.network.backplane.port import Announced
from hubbub.network.log import Entry

__all__ = ["LocalBackplane"]


class LocalBackplane:
    """Calls the node's own handler, as one that crosses machines would on each of them."""

    def __init__(self) -> None:
        self._handlers: list[Announced] = []

    def subscribe(self, handler: Announced) -> None:
        self._handlers.append(handler)

    def announce(self, entries: Sequence[Entry]) -> None:
        for handler in self._handlers:
            for entry in entries:
                handler(entry)
