"""What a mod writes in its own tables.

Writes go into the transaction of the batch that is formed next: durable when the operation is
answered, in the order of the log, and undone with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Statement", "Value"]

Value = str | bytes | int | float | None
"""What SQLite keeps."""


class Statement(NamedTuple):
    """One statement on tables of the mod."""

    sql: str
    values: Sequence[Value] = ()
    rows: int | None = None
    """How many rows it must change; another number is a conflict, and nothing of what belongs
    together is written. None: any."""
