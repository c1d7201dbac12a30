"""Whether the package that speaks the protocol is there: it comes with an extra."""

from __future__ import annotations

import importlib.util

__all__ = ["missing"]


def missing() -> str | None:
    """What is missing, and how to get it; None: nothing is."""
    if importlib.util.find_spec("mcp") is not None:
        return None
    return (
        "`mcp` needs an extra: pip install 'hubbub[mcp]' (in a checkout: pip install -e '.[mcp]')"
    )
