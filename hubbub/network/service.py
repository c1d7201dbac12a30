"""Services, the hub's capabilities beside its kernel, with the operations that belong to each; and
the registry of all operations, including those of mods.

    class MemoryService(Service):
        @operation(permission="write", output=Done)
        def remember(self, call: Caller, args: Remember) -> Commit: ...

A service gets the kernel and the services it uses as constructor arguments. It subscribes to events
by overriding hooks; `hubbub.network.hub` lists the services in listening order.
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
    """Base class; overriding a hook is optional."""

    def __init__(self, kernel: Kernel):
        self.kernel, self.state, self.store = kernel, kernel.state, kernel.store
        self.timer = Timer(kernel.steady, self.due)

    @classmethod
    def declared(cls) -> Sequence[Operation]:
        """Its operations as declared, not bound to an instance."""
        return [each for each in vars(cls).values() if isinstance(each, Operation)]

    def operations(self) -> Sequence[Operation]:
        """Its operations, bound to this instance."""
        return [replace(each, handler=MethodType(each.handler, self)) for each in self.declared()]

    # Hooks ------------------------------------------------------------------------------------

    def begin(self) -> None:
        """The hub is running: finish what an earlier run began."""

    def close(self) -> None:
        """The hub is stopping: start nothing more."""
        self.timer.stop()

    def look(self) -> None:
        """Check the time now, for clocks that are moved by hand."""
        self.timer.look()

    def due(self, now: float) -> float | None:
        """Handle everything due, when a time set on `timer` is reached. Returns the next time, on
        the steady clock."""
        return None

    def joined(self, session: Session) -> None:
        """The session is ready."""

    def left(self, session: Session) -> None:
        """A ready session ended."""

    def absent(self, participant: str, *, replaced: bool) -> None:
        """The participant's last connection ended; `replaced`: in favour of a newer one."""


class Registry:
    """Operations by name; each is declared once."""

    def __init__(self) -> None:
        self.by_name: dict[str, Operation] = {}
        self.version = 0
        """Increases whenever an operation is added or replaced."""

    def add(self, operations: Iterable[Operation]) -> None:
        """Raises ValueError if a name is taken."""
        for operation in operations:
            if operation.name in self.by_name:
                raise ValueError(f"the operation {operation.name} is declared twice")
            self.by_name[operation.name] = operation
        self.version += 1

    def replace(self, operations: Iterable[Operation]) -> None:
        """Replace operations of the same names; skip those without one."""
        for operation in operations:
            if operation.name in self.by_name:
                self.by_name[operation.name] = operation
        self.version += 1

    def values(self) -> Collection[Operation]:
        return self.by_name.values()
