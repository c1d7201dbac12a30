"""A mod's own tables: what it writes, and the answer of an operation that writes them.

Writes go into the transaction of the batch that is formed next: durable when the operation is
answered, in the order of the log, and undone with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from pydantic import BaseModel

from hubbub.errors import OperationError
from hubbub.protocol.messages import Draft

__all__ = ["Keeping", "Statement", "Value", "marks", "parts"]

Value = str | bytes | int | float | None
"""What SQLite keeps."""
T = TypeVar("T", bound=int | str)

AT_ONCE = 1024
"""Names that one statement has; SQLite takes many more."""


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


def parts(names: Sequence[T]) -> Sequence[Sequence[T]]:
    """The names for one statement after the other that says `IN ({marks(part)})`: with repetitions,
    so that there are few different statements, which stay prepared."""
    return [_padded(names[at : at + AT_ONCE]) for at in range(0, len(names), AT_ONCE)]


def _padded(names: Sequence[T]) -> Sequence[T]:
    places = 1 << (len(names) - 1).bit_length()
    return [*names, *[names[0]] * (places - len(names))]


def marks(names: Sequence[object]) -> str:
    """As many places in a statement as there are names."""
    return ", ".join("?" * len(names))
