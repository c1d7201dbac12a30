"""Trace context: the interaction of a message, and its distance from the opening message."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from hubbub.errors import OperationError
from hubbub.protocol.codes import ErrorCode

__all__ = ["Ancestor", "TraceContext", "descend", "opening"]


class TraceContext(NamedTuple):
    """`interaction` is None for the opening message, whose position gives the interaction its
    id."""

    interaction: str | None
    hop: int
    hop_limit: int


class Ancestor(NamedTuple):
    """The data of a message that is named as a cause."""

    thread_no: int
    sender: str
    interaction: str
    hop: int
    hop_limit: int
    untrusted: bool = False
    """Whether it carries content from outside the network."""


@lru_cache(maxsize=64)
def opening(human: bool, hops: int) -> TraceContext:
    """The trace context of a message without a cause.

    An interaction that an agent opens unprompted has half the hops, as no one waits for it.
    """
    return TraceContext(None, 0, hops if human else max(1, hops // 2))


def descend(cause: Ancestor) -> TraceContext:
    """The trace context of a message caused by `cause`. Raises `OperationError` past the hop
    limit."""
    if cause.hop >= cause.hop_limit:
        raise OperationError(
            ErrorCode.HOP_LIMIT,
            f"interaction {cause.interaction} has used its {cause.hop_limit} hops; "
            "a person can continue with a new message",
            details={"interaction_id": cause.interaction, "hops": cause.hop_limit},
        )
    return TraceContext(cause.interaction, cause.hop + 1, cause.hop_limit)
