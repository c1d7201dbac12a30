"""How far a pass rate can be trusted. Pure."""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

__all__ = ["Interval", "wilson"]

Z_95 = 1.959963984540054
"""The normal distribution has 95 % of its mass within so many standard deviations."""


class Interval(NamedTuple):
    """Where the true rate lies, with 95 % confidence."""

    low: float
    high: float


def wilson(passed: int, runs: int, z: float = Z_95) -> Interval:
    """The score interval of Wilson (1927) for `passed` out of `runs`: right for few runs too, and
    never outside of 0 to 1. Without a run nothing is known.

    Raises ValueError for counts that cannot be.
    """
    if not 0 <= passed <= runs:
        raise ValueError(f"{passed} of {runs} runs cannot have passed")
    if runs == 0:
        return Interval(0.0, 1.0)
    rate, spread = passed / runs, z * z / runs
    middle = (rate + spread / 2) / (1 + spread)
    half = z * sqrt(rate * (1 - rate) / runs + spread / (4 * runs)) / (1 + spread)
    # At the ends the exact bound is the end itself, which rounding may miss.
    low = 0.0 if passed == 0 else max(0.0, middle - half)
    high = 1.0 if passed == runs else min(1.0, middle + half)
    return Interval(low, high)
