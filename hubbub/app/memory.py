"""The garbage collector of a hub process."""

from __future__ import annotations

import gc

__all__ = ["calm_collector"]

YOUNG, MIDDLE, OLD = 20_000, 20, 50
"""Objects after which each generation is looked at. Messages are made of objects that die by
themselves when they have been sent; with the defaults, a burst of them has the collector walk
through everything that the hub holds, again and again."""


def calm_collector() -> None:
    """Call it once the program is loaded: what lives until the end is not looked at any more."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, MIDDLE, OLD)
