"""The few numbers that rounds are boiled down to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

__all__ = ["Interval", "middle", "paired_ratio", "percentile"]


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` (0 to 1) of the values do not exceed.

    Raises ValueError if there are no values.
    """
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    rank = -(-len(ordered) * share // 1)  # rounded up
    return ordered[max(0, int(rank) - 1)]


@dataclass(frozen=True)
class Interval:
    """What one side did in one round."""

    rate: float
    """Messages completed per second."""
    p50_ms: float
    """Of the round trip as the sender sees it."""
    p99_ms: float
    cpu_us: float
    """User and system time of the server per completed message, microseconds."""
    load_busy: float
    """Share of one core that the load program used: near 1, it was the bottleneck."""
    ack_p50_ms: float | None = None
    """Until the server's answer alone, where it gives one."""


def middle(rounds: Sequence[Interval], figure: Callable[[Interval], float]) -> float:
    """The median over the rounds."""
    return median(map(figure, rounds))


def paired_ratio(
    ours: Sequence[Interval], theirs: Sequence[Interval], figure: Callable[[Interval], float]
) -> float:
    """The median of the ratios of neighbouring rounds: what disturbs the machine disturbs both."""
    return median(figure(a) / figure(b) for a, b in zip(ours, theirs, strict=True))
