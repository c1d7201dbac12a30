"""The operations of a network: those of the core's services and of its mods, by name."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from hubbub.mods.operation import Operation

__all__ = ["Registry"]


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

    def get(self, name: str) -> Operation | None:
        return self.by_name.get(name)

    def values(self) -> Collection[Operation]:
        return self.by_name.values()
