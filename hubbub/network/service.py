"""A service: one capability of the hub beside its kernel, with the operations that belong to it.

    class MemoryService(Service):
        @operation(permission="write", output=Done)
        def remember(self, call: Caller, args: Remember) -> Commit: ...

A service is given the kernel, and the services it uses, as arguments of its constructor. What it
must hear of it declares by overriding a hook; `hubbub.network.hub` lists the services in the order
in which they hear.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from types import MethodType
from typing import Any, TypeVar

from hubbub.errors import OperationError
from hubbub.mods.operation import Operation
from hubbub.network.kernel import Kernel
from hubbub.network.session import Session
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.operations import Input

__all__ = ["LongCalls", "Service"]

T = TypeVar("T")


class Service:
    """Base class; every hook may be left as it is."""

    def __init__(self, kernel: Kernel):
        self.kernel, self.state, self.store = kernel, kernel.state, kernel.store

    @classmethod
    def declared(cls) -> Sequence[Operation]:
        """Its operations as they are declared, without an instance to run them."""
        return [each for each in vars(cls).values() if isinstance(each, Operation)]

    def operations(self) -> Sequence[Operation]:
        """Its operations, to be run by this instance."""
        return [replace(each, handler=MethodType(each.handler, self)) for each in self.declared()]

    # Hooks ------------------------------------------------------------------------------------

    def begin(self) -> None:
        """The hub runs: finish what an earlier run of it began."""

    def close(self) -> None:
        """The hub stops: start nothing more."""

    def look(self) -> None:
        """Look at the time now: for clocks that are moved by hand."""

    def joined(self, session: Session) -> None:
        """The session is ready."""

    def left(self, session: Session) -> None:
        """A session that was ready is gone."""

    def absent(self, participant: str, *, replaced: bool) -> None:
        """The last connection of the participant is gone; `replaced`: for a newer one."""


class LongCalls:
    """Calls that may take longer than a connection may be silent.

    Who waits longer than `patience_s` is refused for now and is to ask again. Who asks again, also
    after its connection was lost, joins what is under way: a call runs on without anybody who
    waits, and its result stays until somebody has had it, or another call begins.
    """

    patience_s = 10.0

    def __init__(self, most: int):
        self._most = most
        self._running: dict[tuple[str, Input], asyncio.Task[Any]] = {}

    async def join(self, who: str, args: Input, run: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result of this call of `who`, which `run` begins if it is not under way.

        Raises what `run` raises, and `OperationError` if it takes longer, if `most` of `who` are
        under way, and when the hub stops.
        """
        key = who, args
        task: asyncio.Task[T] | None = self._running.get(key)
        if task is None:
            self._running = {key: each for key, each in self._running.items() if not each.done()}
            if sum(other == who for other, _ in self._running) >= self._most:
                text = f"{self._most} of these are under way; wait for one of them"
                raise OperationError(ErrorCode.LIMIT, text)
            task = self._running[key] = asyncio.create_task(run())
            task.add_done_callback(_seen)
        await asyncio.wait({task}, timeout=self.patience_s)
        if not task.done():
            raise OperationError(ErrorCode.NOT_TRIED, "it is under way: ask again", temporary=True)
        self._running = {key: each for key, each in self._running.items() if each is not task}
        if task.cancelled():
            raise OperationError(ErrorCode.DRAINING, "the hub is stopping; come back")
        return task.result()

    def close(self) -> None:
        """End all that is under way."""
        for task in self._running.values():
            task.cancel()


def _seen(task: asyncio.Task[Any]) -> None:
    """A failure that nobody has waited for is no surprise to asyncio."""
    if not task.cancelled():
        task.exception()
