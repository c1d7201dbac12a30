"""All operations of the core as they are declared: what can be asked of a hub without mods."""

from __future__ import annotations

from typing import get_type_hints

from hubbub.mods.operation import Operation
from hubbub.network.hub import Services
from hubbub.network.service import Service

__all__ = ["CORE_OPERATIONS"]

CORE_OPERATIONS: tuple[Operation, ...] = tuple(
    operation
    for service in get_type_hints(Services).values()
    if issubclass(service, Service)
    for operation in service.declared()
)
"""The hub runs them bound to its services; docs and checks read them here."""
