"""What an operation of a mod keeps, on its way into the log's transaction and back as an answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from pydantic import BaseModel

from hubbub.errors import OperationError
from hubbub.mods.rows import Keeping
from hubbub.network.caller import Recording
from hubbub.network.records import ModRows
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Draft

__all__ = ["Later", "conflicted", "recording"]

T = TypeVar("T")


class Later(Protocol):
    """Calls what the mod has handed over: its answer, or None if that fails. It raises nothing,
    for it is called from within commits."""

    def __call__(self, name: str, work: Callable[[], T]) -> T | None: ...


def conflicted(mod: str, why: Exception) -> OperationError:
    """Somebody else was first, or the rows contradict what is there."""
    return OperationError(
        ErrorCode.CONFLICT,
        f"{mod}: this has changed meanwhile ({why}); read it again, and decide anew",
        details={"mod": mod},
    )


def recording(
    mod: str, keeping: Keeping, later: Later, say: Callable[[Sequence[Draft]], None]
) -> Recording:
    """The rows as a record, and the answer when they are durable; then the messages are said."""
    rows = ModRows(mod, tuple(keeping.statements))

    def over() -> None:
        if keeping.over is not None:
            later("over", keeping.over)

    def instead() -> BaseModel | OperationError | None:
        other: BaseModel | OperationError | None = None
        if rows.refused is not None:
            made = later("conflict", keeping.conflict) if keeping.conflict is not None else None
            told = isinstance(made, BaseModel | OperationError)
            other = made if told else conflicted(mod, rows.refused)
        else:
            if keeping.kept is not None:
                later("kept", keeping.kept)
            say(keeping.says)
        over()
        return other

    return Recording(lambda head: [rows], keeping.answer, instead=instead, failed=over)
