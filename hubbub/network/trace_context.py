"""Trace context: which interaction a message belongs to, and how far it is from what opened it."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from hubbub.errors import OperationError
from hubbub.protocol.codes import ErrorCode

__all__ = ["Ancestor", "TraceContext", "descend", "opening"]


class TraceContext(NamedTuple):
    """`interaction` is None for a message that opens one: it is named after its own position."""

    interaction: str | None
    hop: int
    hop_limit: int


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
