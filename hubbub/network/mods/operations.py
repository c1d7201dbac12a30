"""Operations of mods, run guarded: what breaks one breaks one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from pydantic import BaseModel

from hubbub.errors import OperationError, StoreUnavailable
from hubbub.mods.api import Mod
from hubbub.mods.operation import Operation, Speaking
from hubbub.mods.pipeline import Pipeline
from hubbub.mods.rows import Keeping, Statement
from hubbub.network.caller import Caller
from hubbub.network.commit import Commit
from hubbub.network.records import ModRows
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Draft
from hubbub.protocol.operations import Input
from hubbub.user_code import contained

__all__ = ["ModOperations", "commit_of", "conflicted"]

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


def commit_of(
    mod: str, keeping: Keeping, later: Later, say: Callable[[Sequence[Draft]], None]
) -> Commit:
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

    return Commit(lambda head: [rows], keeping.answer, instead=instead, failed=over)


class ModOperations:
    """Runs what mods declare and hand over to be called later."""

    def __init__(self, pipeline: Pipeline, failed: Callable[[Mod, str, BaseException], None]):
        self._guard, self._failed = pipeline.guard, failed

    def guarded(self, mod: Mod, operation: Operation) -> Operation:
        """The operation with a handler that raises `OperationError` and `StoreUnavailable` alone.
        It is not called any more when it has been too slow too often."""
        guard = self._asynchronous if operation.is_async else self._plain
        return replace(operation, handler=guard(mod, operation), mod=mod.name)

    def _plain(self, mod: Mod, operation: Operation) -> Callable[[Caller, Input], object]:
        guard, handler, name = self._guard, operation.handler, operation.name

        def ask(call: Caller, args: Input) -> object:
            if (mod, name) in guard.off:
                raise _switched_off(mod, name)
            try:
                return _answer(
                    operation, guard.run(mod.config.time_limit, mod, name, handler, call, args)
                )
            except (OperationError, StoreUnavailable):
                raise
            except BaseException as error:  # one mod's failure is its own
                raise self._broken(mod, name, error) from error

        return ask

    def _asynchronous(self, mod: Mod, operation: Operation) -> Callable[[Caller, Input], Any]:
        # Any: the handlers of operations are what their declaration makes of them.
        guard, handler, name = self._guard, operation.handler, operation.name

        async def ask(call: Caller, args: Input) -> object:
            if (mod, name) in guard.off:
                raise _switched_off(mod, name)
            try:
                with contained():
                    outcome = await guard.steps(mod, name, handler(call, args))
                return _answer(operation, outcome)
            except (OperationError, StoreUnavailable):
                raise
            except Exception as error:
                raise self._broken(mod, name, error) from error

        return ask

    def _broken(self, mod: Mod, operation: str, error: BaseException) -> OperationError:
        """Tells of the failure, and what the caller is told."""
        self._failed(mod, operation, error)
        return OperationError(
            ErrorCode.INTERNAL,
            f"the mod {mod.name} has failed in {operation}; the operator is told",
            details={"mod": mod.name},
        )

    def later(self, mod: Mod, name: str, work: Callable[[], T]) -> T | None:
        """What the work answers that the mod has handed over; None if it fails."""
        try:
            return self._guard.run(mod.config.time_limit, mod, name, work)
        except BaseException as error:  # noqa: BLE001  one mod's failure is its own
            self._failed(mod, name, error)
            return None


def _switched_off(mod: Mod, operation: str) -> OperationError:
    return OperationError(
        ErrorCode.INTERNAL,
        f"{operation} of the mod {mod.name} is switched off: it held up the network again "
        "and again; the operator is told",
        details={"mod": mod.name},
    )


def _answer(operation: Operation, outcome: object) -> object:
    """Raises `TypeError` for what is no answer: nobody may have type-checked the mod."""
    if isinstance(outcome, Speaking):
        return outcome
    answer = outcome
    if isinstance(outcome, Keeping):
        answer = outcome.answer
        _check_each(operation, outcome.statements, Statement)
        _check_each(operation, outcome.says, Draft)
    if not isinstance(answer, BaseModel):
        expected = operation.output.__name__
        raise TypeError(f"{operation.name} must answer {expected}, not {answer!r:.100}")
    return outcome


def _check_each(operation: Operation, given: Sequence[object], kind: type) -> None:
    for each in given:
        if not isinstance(each, kind):
            raise TypeError(f"{operation.name} must keep {kind.__name__}s, not {each!r:.100}")
