"""A mod's own tables: what it writes, and the answer of an operation that writes them.

Writes go into the transaction of the batch that is formed next: durable when the operation is
answered, in the order of the log, and undone with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pydantic import BaseModel

from hubbub.errors import OperationError
from hubbub.protocol.messages import Draft

__all__ = ["Keeping", "Statement", "Value"]

Value = str | bytes | int | float | None
"""What SQLite keeps."""


class Statement(NamedTuple):
    """One statement on tables of the mod."""

    sql: str
    values: Sequence[Value] = ()
    rows: int | None = None
    """How many rows it must change; another number is a conflict, and nothing of what belongs
    together is written. None: any."""


@dataclass(slots=True)
class Keeping:
    """A handler's answer that says: write these rows, all or none of them, then answer this."""

    statements: Sequence[Statement]
    answer: BaseModel
    conflict: Callable[[], OperationError | BaseModel] | None = None
    """What is answered instead when a statement changed other than its `rows`; left out: the error
    `conflict`, which says to read again."""
    says: Sequence[Draft] = ()
    """Messages that enter the log with it; `host.draft` makes them."""
    kept: Callable[[], None] | None = None
    """Called when the rows are durable: takes them over into memory."""
    over: Callable[[], None] | None = None
    """Called in the end, whether they were written or not: gives back what was held meanwhile."""
    positions: list[int] = field(default_factory=list)
    """Of the messages that it says, once they are in the log."""
