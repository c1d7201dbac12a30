"""How many examples a property is tried with that the usual number does not suit."""

from __future__ import annotations

from hypothesis import settings

__all__ = ["FULL", "examples"]

FULL = 50
"""Of a property that names no number, in the profile `full`."""


def examples(count: int) -> int:
    """`count` in the profile `full`; in another one as many more or fewer as it has of all."""
    return max(1, count * settings().max_examples // FULL)
