"""The port that the hub announces commits to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from hubbub.network.log import Entry

__all__ = ["Announced", "Backplane"]

Announced = Callable[[Entry], None]
"""A node's handler for a committed entry: it offers the entry to the sessions of that node."""


class Backplane(Protocol):
    """How the nodes of a hub tell each other what was committed.

    A push is only a hint that the log has grown: losing an announcement delays a message and loses
    none.
    """

    def subscribe(self, handler: Announced) -> None:
        """Have `handler` called for every entry that any node announces, in log order."""
        ...

    def announce(self, entries: Sequence[Entry]) -> None:
        """These entries are durable; called once per batch."""
        ...
