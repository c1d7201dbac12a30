"""All operations of the core as declared: the operations of a hub without mods."""

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
"""The operations of all services, unbound, for docs and checks."""
