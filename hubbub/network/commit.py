"""A commit: what a handler wants written, and what follows."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from hubbub.errors import OperationError
from hubbub.network.records import Record

__all__ = ["Commit"]


@dataclass(slots=True)
class Commit:
    """A handler's answer that says: write these records, then do and say this.

    It is handed to the log before the next frame of the same socket is read, so writes keep the
    order in which they were asked for.
    """

    records: Callable[[int], Sequence[Record]]
    """Made when the batch is formed; the argument is the last position before it."""
    answer: BaseModel | Callable[[], Coroutine[Any, Any, BaseModel]]
    """The output, or what makes it after the commit."""
    committed: Callable[[], None] | None = None
    """Takes the change over into memory."""
    failed: Callable[[], None] | None = None
    """Takes back what was reserved."""
    instead: Callable[[], BaseModel | OperationError | None] | None = None
    """After the commit: what is answered in place of `answer`, if anything is."""
