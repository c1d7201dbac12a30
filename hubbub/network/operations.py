"""All operations of the core as they are declared: what can be asked of a hub without mods."""

from __future__ import annotations

from hubbub.mods.operation import Operation
from hubbub.network import hub
from hubbub.network.service import Service

__all__ = ["CORE_OPERATIONS"]

CORE_OPERATIONS: tuple[Operation, ...] = tuple(
    operation
    for kind in vars(hub).values()
    if isinstance(kind, type) and issubclass(kind, Service)
    for operation in kind.declared()
)
"""Those of the services that the hub is made of; it runs them bound to itself. Docs and checks read
them here."""
