"""Trace context: which interaction a message belongs to, and how far it is from what opened it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from hubbub.errors import OperationError
from hubbub.ids import interaction_id
from hubbub.protocol.codes import ErrorCode

__all__ = ["Ancestor", "Recent", "TraceContext", "descend", "opening"]


class TraceContext(NamedTuple):
    """`interaction` is None for a message that opens one: it is named after its own position."""

    interaction: str | None
    hop: int
    hop_limit: int

    @property
    def at_limit(self) -> bool:
        """Whether this is the interaction's last message: it wakes nobody."""
        return self.hop >= self.hop_limit


class Ancestor(NamedTuple):
    """What must be known of a message that is named as a cause."""

    thread_no: int
    sender: str
    interaction: str
    hop: int
    hop_limit: int
    outside: bool = False
    """Whether it carries content from outside the network."""


@lru_cache(maxsize=64)
def opening(human: bool, hops: int) -> TraceContext:
    """The trace context of a message without a cause.

    An agent that speaks up by itself opens an interaction with half the hops: nobody waits for it.
    """
    return TraceContext(None, 0, hops if human else max(1, hops // 2))


def descend(cause: Ancestor) -> TraceContext:
    """That of a message caused by `cause`. Raises `OperationError` past the hop limit."""
    if cause.hop >= cause.hop_limit:
        raise OperationError(
            ErrorCode.HOP_LIMIT,
            f"interaction {cause.interaction} has used its {cause.hop_limit} hops; "
            "a person may go on by sending a new message",
            details={"interaction_id": cause.interaction, "hops": cause.hop_limit},
        )
    return TraceContext(cause.interaction, cause.hop + 1, cause.hop_limit)


Slot = tuple[int, int, str, str | None, int, int, bool]
"""Of the message at this position: its thread's number, its sender, its interaction (None if it has
opened one), its hop, how many there may be, whether it is from outside."""


class Recent:
    """The ancestors of the last messages: a cause is nearly always one of them.

    Every message is added and few are asked for, so they are kept as plain tuples.
    """

    __slots__ = ("_ring", "_size")

    def __init__(self, size: int = 4096):
        self._size = size
        self._ring: list[Slot] = [(0, 0, "", None, 0, 0, False)] * size

    def add(self, slots: Iterable[Slot]) -> None:
        """Remember these messages."""
        ring, size = self._ring, self._size
        for slot in slots:
            ring[slot[0] % size] = slot

    def get(self, seq: int) -> Ancestor | None:
        """The ancestor at `seq`; None if it is not among the last ones."""
        at, thread_no, sender, interaction, hop, limit, outside = self._ring[seq % self._size]
        if at != seq or seq == 0:
            return None
        own = interaction or interaction_id(seq)
        return Ancestor(thread_no, sender, own, hop, limit, outside)
