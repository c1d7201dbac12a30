"""A service: one capability of the hub beside its kernel, with the operations that belong to it;
and the registry of all operations, those of mods included.

    class MemoryService(Service):
        @operation(permission="write", output=Done)
        def remember(self, call: Caller, args: Remember) -> Commit: ...

A service is given the kernel, and the services it uses, as arguments of its constructor. What it
must hear of it declares by overriding a hook; `hubbub.network.hub` lists the services in the order
in which they hear.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from types import MethodType

from hubbub.mods.operation import Operation
from hubbub.network.kernel import Kernel
from hubbub.network.session import Session
from hubbub.network.timer import Timer

__all__ = ["Registry", "Service"]


class Service:
    """Base class; every hook may be left as it is."""

    def __init__(self, kernel: Kernel):
        self.kernel, self.state, self.store = kernel, kernel.state, kernel.store
        self.timer = Timer(kernel.steady, self.due)

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
        self.timer.stop()

    def look(self) -> None:
        """Look at the time now: for clocks that are moved by hand."""
        self.timer.look()

    def due(self, now: float) -> float | None:
        """A moment has come that `timer` was told of. Deals with all that is due; returns the next
        moment, by the steady clock."""
        return None

    def joined(self, session: Session) -> None:
        """The session is ready."""

    def left(self, session: Session) -> None:
        """A session that was ready is gone."""

    def absent(self, participant: str, *, replaced: bool) -> None:
        """The last connection of the participant is gone; `replaced`: for a newer one."""


class Registry:
    """Operations by name; each is declared once."""

    def __init__(self) -> None:
        self.by_name: dict[str, Operation] = {}
        self.version = 0
        """Grows whenever an operation is added or replaced."""

    def add(self, operations: Iterable[Operation]) -> None:
        """Raises ValueError for a name that is taken."""
        for operation in operations:
            if operation.name in self.by_name:
                raise ValueError(f"the operation {operation.name} is declared twice")
            self.by_name[operation.name] = operation
        self.version += 1

    def replace(self, operations: Iterable[Operation]) -> None:
        """Run these in place of those of the same name; others of them are left out."""
        for operation in operations:
            if operation.name in self.by_name:
                self.by_name[operation.name] = operation
        self.version += 1

    def values(self) -> Collection[Operation]:
        return self.by_name.values()
