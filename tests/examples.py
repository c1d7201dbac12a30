"""The number of examples for properties that need more or fewer than usual."""

from __future__ import annotations

from hypothesis import settings

__all__ = ["FULL", "examples"]

FULL = 50
"""The usual number in the profile `full`."""


def examples(count: int) -> int:
    """`count` in the profile `full`, and in proportion in the others."""
    return max(1, count * settings().max_examples // FULL)
