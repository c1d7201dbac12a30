"""Trying a network from one of its messages on, in a process beside the hub: for owners."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

from hubbub.errors import OperationError
from hubbub.mods.operation import operation
from hubbub.network.caller import Caller
from hubbub.network.kernel import Kernel
from hubbub.network.service import Service
from hubbub.protocol.branches import Branch, Branched, Case, MakeCase
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.operations import Input

__all__ = ["BranchService", "Program"]

T = TypeVar("T")

MOST_AT_ONCE = 2
"""Commands under way: each is a process, and costs what its models cost."""


class Program(Protocol):
    """The command line, for this network. Raises `OperationError` with its words."""

    async def branch(self, args: Branch) -> Branched: ...

    async def case(self, message: str) -> str: ...


class BranchService(Service):
    """Nothing of it is written in this network, and nothing is sent.

    Who waits longer than a connection may be silent is to ask again, and hears of what is under
    way, as who comes back after the connection was lost.
    """

    patience_s = 10.0

    def __init__(self, kernel: Kernel):
        super().__init__(kernel)
        self.program: Program | None = None
        self._running: dict[Input, asyncio.Task[Any]] = {}

    # Reads for the hub: what the owner writes meanwhile does not wait for the models.
    @operation(tool=False)
    async def branch(self, call: Caller, args: Branch) -> Branched:
        """Let a copy of the network go on from a message with other instructions or models, apart
        from it, and compare. Nothing is sent, and no tool that reaches out is run. For owners; the
        store must be a file."""
        return await self._once(call, args, lambda program: program.branch(args))

    @operation(tool=False)
    async def make_case(self, call: Caller, args: MakeCase) -> Case:
        """Write what came of a message as a case for `hubbub test`. All of it must be over. For
        owners."""
        yaml = await self._once(call, args, lambda program: program.case(args.message))
        return Case(yaml=yaml)

    async def _once(
        self, call: Caller, args: Input, run: Callable[[Program], Coroutine[None, None, T]]
    ) -> T:
        call.require_owner()
        task: asyncio.Task[T] | None = self._running.get(args)
        if task is None:
            if self.program is None:
                raise OperationError(ErrorCode.NOT_TRIED, "only `hubbub up` can do this")
            self._running = {key: each for key, each in self._running.items() if not each.done()}
            if len(self._running) >= MOST_AT_ONCE:
                text = f"{MOST_AT_ONCE} of these are under way; wait for one of them"
                raise OperationError(ErrorCode.LIMIT, text)
            task = self._running[args] = asyncio.create_task(run(self.program))
        await asyncio.wait({task}, timeout=self.patience_s)
        if not task.done():
            raise OperationError(ErrorCode.NOT_TRIED, "it is under way: ask again", temporary=True)
        self._running.pop(args, None)
        return task.result()

    def close(self) -> None:
        """The hub stops: their processes end."""
        for task in self._running.values():
            task.cancel()
