"""Whether the packages of a door are there: each door is an extra."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal

__all__ = ["missing"]

Door = Literal["acp", "mcp"]

_PACKAGES: Mapping[Door, Sequence[str]] = MappingProxyType({"acp": ("acp", "mcp"), "mcp": ("mcp",)})


def missing(door: Door) -> str | None:
    """What is missing, and how to get it; None: nothing is."""
    if all(importlib.util.find_spec(package) for package in _PACKAGES[door]):
        return None
    return (
        f"`{door}` needs an extra: pip install 'hubbub[{door}]' "
        f"(in a checkout: pip install -e '.[{door}]')"
    )
