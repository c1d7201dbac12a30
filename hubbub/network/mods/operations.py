"""Operations of mods, run with a guard, so that a failure breaks only its own call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pydantic import BaseModel

from hubbub.errors import OperationError, StoreUnavailable
from hubbub.mods.api import Mod
from hubbub.mods.operation import Commit, Operation, Statement
from hubbub.mods.pipeline import Pipeline
from hubbub.network.caller import Caller
from hubbub.network.records import ModRows, Record
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Draft
from hubbub.protocol.operations import Input
from hubbub.user_code import contained

__all__ = ["ModOperations"]


class ModOperations:
    """Runs the operations that mods declare, and the callbacks they pass."""

    def __init__(self, pipeline: Pipeline, failed: Callable[[Mod, str, BaseException], None]):
        self._guard, self._failed = pipeline.guard, failed

    def guarded(self, mod: Mod, operation: Operation) -> Operation:
        """The operation with a handler that raises only `OperationError` and `StoreUnavailable`. It
        is switched off after being too slow too often."""
        guard = self._asynchronous if operation.is_async else self._plain
        return replace(operation, handler=guard(mod, operation), mod=mod.name)

    def _plain(self, mod: Mod, operation: Operation) -> Callable[[Caller, Input], object]:
        guard, handler, name = self._guard, operation.handler, operation.name

        def ask(call: Caller, args: Input) -> object:
            if (mod, name) in guard.off:
                raise _switched_off(mod, name)
            try:
                outcome = guard.run(mod.config.time_limit, mod, name, handler, call, args)
                return self._outcome(mod, operation, outcome)
            except (OperationError, StoreUnavailable):
                raise
            except BaseException as error:  # isolate the mod's failure
                raise self._broken(mod, name, error) from error

        return ask

    def _asynchronous(self, mod: Mod, operation: Operation) -> Callable[[Caller, Input], Any]:
        # Any, as a handler's type depends on its declaration.
        guard, handler, name = self._guard, operation.handler, operation.name

        async def ask(call: Caller, args: Input) -> object:
            if (mod, name) in guard.off:
                raise _switched_off(mod, name)
            try:
                with contained():
                    outcome = await guard.steps(mod, name, handler(call, args))
                return self._outcome(mod, operation, outcome)
            except (OperationError, StoreUnavailable):
                raise
            except Exception as error:
                raise self._broken(mod, name, error) from error

        return ask

    def _broken(self, mod: Mod, operation: str, error: BaseException) -> OperationError:
        """Report the failure; returns the error for the caller."""
        self._failed(mod, operation, error)
        return OperationError(
            ErrorCode.INTERNAL,
            f"the mod {mod.name} failed in {operation}; the operator is notified",
            details={"mod": mod.name},
        )

    def _outcome(self, mod: Mod, operation: Operation, outcome: object) -> object:
        """The outcome in the hub's terms. Raises `TypeError` for an invalid one, as the mod may not
        be type-checked."""
        if isinstance(outcome, BaseModel | Draft):
            return outcome
        if not (isinstance(outcome, Commit) and isinstance(outcome.answer, BaseModel)):
            answer = outcome.answer if isinstance(outcome, Commit) else outcome
            expected = operation.output.__name__
            raise TypeError(f"{operation.name} must return {expected}, not {answer!r:.100}")
        if callable(outcome.records):
            raise TypeError(f"{operation.name} must commit Statements, not a function")
        _check_each(operation, outcome.records, Statement)
        _check_each(operation, outcome.messages, Draft)
        rows: list[Record] = [ModRows(mod.name, tuple(outcome.records))]
        applied, released = outcome.applied, outcome.released
        return Commit(
            rows,
            outcome.answer,
            applied and partial(self._run, mod, "applied", applied),
            released and partial(self._run, mod, "released", released),
            outcome.messages,
            outcome.conflict,
        )

    def _run(self, mod: Mod, name: str, work: Callable[[], None]) -> None:
        """Run a callback of the mod. Raises nothing, as it runs within a commit."""
        try:
            self._guard.run(mod.config.time_limit, mod, name, work)
        except BaseException as error:  # noqa: BLE001  isolate the mod's failure
            self._failed(mod, name, error)


def _switched_off(mod: Mod, operation: str) -> OperationError:
    return OperationError(
        ErrorCode.INTERNAL,
        f"{operation} of the mod {mod.name} is switched off because it kept holding up the "
        "network; the operator is notified",
        details={"mod": mod.name},
    )


def _check_each(operation: Operation, given: Sequence[object], kind: type) -> None:
    for each in given:
        if not isinstance(each, kind):
            raise TypeError(f"{operation.name} must commit {kind.__name__}s, not {each!r:.100}")
