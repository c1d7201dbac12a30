"""The policy: gates between a draft and the log, called in order.

    submitted -> mods -> trace context -> wakes -> gate, gate, gate -> log

A gate can accept a message, reject it with an `OperationError`, withdraw wakes, or add records that
are written with it. It rolls back what it counted if the message does not reach the log.
"""

from __future__ import annotations

from typing import Protocol

from hubbub.network.log import Entry
from hubbub.network.trace_context import Ancestor

__all__ = ["Gate"]


class Gate(Protocol):
    """One check of messages. It runs in the hub's loop, without an await."""

    watches: object
    """Truthy if the gate checks ordinary messages. It always checks messages that open or end a
    request or wait for an answer. Other messages that open an interaction and wake no one skip all
    gates."""

    def needs(self, cause: Ancestor) -> bool:
        """Whether `load` must run before a message with this cause is checked."""
        return False

    async def load(self, cause: Ancestor) -> None:
        """Load data for the check. Raises `StoreUnavailable`."""
        return

    def judge(self, entry: Entry) -> None:
        """Check an entry that has decisions but no position yet. On `OperationError` nothing of it
        is counted."""
        ...

    def roll_back(self, entry: Entry) -> None:
        """Roll back an accepted entry that did not reach the log."""
        return
