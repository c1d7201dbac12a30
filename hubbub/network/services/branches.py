"""Trying a network from one of its messages on, in a process beside the hub: for owners."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Protocol

from hubbub.errors import OperationError
from hubbub.mods.operation import operation
from hubbub.network.caller import Caller
from hubbub.network.kernel import Kernel
from hubbub.network.service import LongCalls, Service
from hubbub.protocol.branches import Branch, Branched, Case, MakeCase
from hubbub.protocol.codes import ErrorCode

__all__ = ["BranchService", "Program"]

MOST_AT_ONCE = 2
"""Commands under way: each is a process, and costs what its models cost."""
OWNERS = "owners"
"""They share what is under way."""


class Program(Protocol):
    """The command line, for this network. Raises `OperationError` with its words."""

    def branch(self, args: Branch) -> Coroutine[Any, Any, Branched]: ...

    def case(self, message: str) -> Coroutine[Any, Any, str]: ...


class BranchService(Service):
    """Nothing of it is written in this network, and nothing is sent."""

    def __init__(self, kernel: Kernel):
        super().__init__(kernel)
        self.program: Program | None = None
        self.calls = LongCalls(MOST_AT_ONCE)

    # Reads for the hub: what the owner writes meanwhile does not wait for the models.
    @operation(tool=False)
    async def branch(self, call: Caller, args: Branch) -> Branched:
        """Let a copy of the network go on from a message with other instructions or models, apart
        from it, and compare. Nothing is sent, and no tool that reaches out is run. For owners; the
        store must be a file."""
        program = self._program(call)
        return await self.calls.join(OWNERS, args, lambda: program.branch(args))

    @operation(tool=False)
    async def make_case(self, call: Caller, args: MakeCase) -> Case:
        """Write what came of a message as a case for `hubbub test`. All of it must be over. For
        owners."""
        program = self._program(call)
        yaml = await self.calls.join(OWNERS, args, lambda: program.case(args.message))
        return Case(yaml=yaml)

    def _program(self, call: Caller) -> Program:
        call.require_owner()
        if self.program is None:
            raise OperationError(ErrorCode.NOT_TRIED, "only `hubbub up` can do this")
        return self.program

    def close(self) -> None:
        """The hub stops: their processes end."""
        self.calls.close()
