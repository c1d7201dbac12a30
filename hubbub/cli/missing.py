"""What is said of an operation that the network does not have."""

from __future__ import annotations

import re

__all__ = ["missing_mod", "unknown_operation", "without"]

_NAMED = re.compile(r"there is no operation '(\w+)'")


def missing_mod(operation: str) -> str | None:
    """The mod that comes with Hubbub and adds this operation."""
    # Imports all of them, and so stands on the way of failures only.
    from hubbub.mods.loader import BUILT_IN, find_mod
    from hubbub.mods.operation import Operation

    for name in BUILT_IN:
        if isinstance(getattr(find_mod(name).kind, operation, None), Operation):
            return name
    return None


def unknown_operation(message: str) -> str | None:
    """The hub's sentence with the mod that the network lacks, if it is one that comes along."""
    named = _NAMED.search(message)
    mod = missing_mod(named[1]) if named else None
    return None if mod is None else without(mod)


def without(mod: str) -> str:
    """What to do about it."""
    return (
        f"this network does not have the mod {mod}; add `- {mod}` to `mods` in its YAML, "
        "and start it again"
    )
