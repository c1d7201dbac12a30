"""The policy: gates that stand between a draft and the log, asked in one order.

    submitted -> mods -> trace context -> wakes -> gate, gate, gate -> log

A gate may let a message pass, reject it with an `OperationError`, take wakes from it, or add rows
that are written with it. What it counts it takes back if the message does not reach the log.
"""

from __future__ import annotations

from typing import Protocol

from hubbub.network.log import Entry
from hubbub.network.trace_context import Ancestor

__all__ = ["Gate"]


class Gate(Protocol):
    """One judge of messages. All of it runs in the hub's loop, between two awaits."""

    watches: object
    """Whether, as its truth tells, it has something to say of messages that neither ask, end a
    request nor wait for an answer; of those it always has. What opens an interaction, is none of
    these and wakes nobody passes all gates."""

    def needs(self, cause: Ancestor) -> bool:
        """Whether something must be loaded before a message caused by this one can be judged."""
        return False

    async def load(self, cause: Ancestor) -> None:
        """Load it. Raises `StoreUnavailable`."""
        return

    def judge(self, entry: Entry) -> None:
        """Judge an entry whose decisions are made, but not its position. Raises `OperationError`;
        then nothing of it is counted."""
        ...

    def take_back(self, entry: Entry) -> None:
        """An entry that was let pass is not in the log after all."""
        return
