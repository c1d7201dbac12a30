"""Lineage: which interaction a message belongs to, and how far it is from what opened it."""

from __future__ import annotations

from typing import NamedTuple

from hubbub.errors import OperationError
from hubbub.protocol.codes import ErrorCode

__all__ = ["Ancestor", "Lineage", "Recent", "descend", "opening"]


class Lineage(NamedTuple):
    """`interaction` is None for a message that opens one: it is named after its own position."""

    interaction: str | None
    hop: int
    hop_limit: int

    @property
    def at_limit(self) -> bool:
        return self.hop >= self.hop_limit


class Ancestor(NamedTuple):
    """What must be known of a message that is named as a cause."""

    thread_no: int
    sender: str
    interaction: str
    hop: int
    hop_limit: int


def opening(human: bool, hops: int) -> Lineage:
    """The lineage of a message without a cause.

    An agent that speaks up by itself opens an interaction with half the hops: nobody waits for it.
    """
    return Lineage(None, 0, hops if human else max(1, hops // 2))


def descend(cause: Ancestor) -> Lineage:
    """The lineage of a message caused by `cause`. Raises `OperationError` past the hop limit."""
    if cause.hop >= cause.hop_limit:
        raise OperationError(
            ErrorCode.HOP_LIMIT,
            f"interaction {cause.interaction} has used its {cause.hop_limit} hops; "
            "a person may go on by sending a new message",
            details={"interaction_id": cause.interaction, "hops": cause.hop_limit},
        )
    return Lineage(cause.interaction, cause.hop + 1, cause.hop_limit)


class Recent:
    """The ancestors of the last messages: a cause is nearly always one of them."""

    __slots__ = ("_ring", "_size")

    def __init__(self, size: int = 4096):
        self._size = size
        self._ring: list[tuple[int, Ancestor] | None] = [None] * size

    def add(self, seq: int, ancestor: Ancestor) -> None:
        self._ring[seq % self._size] = (seq, ancestor)

    def get(self, seq: int) -> Ancestor | None:
        slot = self._ring[seq % self._size]
        return slot[1] if slot is not None and slot[0] == seq else None
