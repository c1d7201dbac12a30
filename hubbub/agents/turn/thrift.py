"""What a model is told when little is left of a budget. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter

from hubbub.protocol.spending import Left, Whose

__all__ = ["reminder"]

_FOR: dict[Whose, str] = {
    "interaction": "for this task",
    "agent": "for you today",
    "thread": "for this thread today",
    "network": "for all agents today",
}
_ITSELF = frozenset({"tokens", "usd", "wall_clock"})
"""Limits of the model's own work; the others are of how many it may involve."""
_FINISH = "Finish now with what you have."
_ALONE = "Involve no other agent unless you must."


def reminder(low: Sequence[Left]) -> str:
    """One or two lines in a row: what is left, and what follows from it. Empty without limits."""
    if not low:
        return ""
    order = list(_FOR)
    ranked = sorted(low, key=lambda left: order.index(left.whose))
    told = [
        f"Little is left {_FOR[whose]}: {', '.join(map(_amount, lefts))}."
        for whose, lefts in groupby(ranked, key=attrgetter("whose"))
    ]
    limits = {left.limit for left in low}
    told += [_FINISH] if limits & _ITSELF else []
    told += [_ALONE] if limits - _ITSELF else []
    return " ".join(told)


def _amount(left: Left) -> str:
    rest, of = max(left.of - left.used, 0.0), left.of
    match left.limit:
        case "tokens":
            return f"{rest:,.0f} of {of:,.0f} tokens"
        case "usd":
            return f"${rest:,.4f} of ${of:,.4f}"
        case "wall_clock":
            return f"{rest:,.0f} of {of:,.0f} seconds"
        case "wakes":
            return f"{rest:,.0f} of {of:,.0f} turns that messages may start"
        case "agents":
            return f"{rest:,.0f} of {of:,.0f} agents that may be woken"
        case "hops":
            return f"{rest:,.0f} of {of:,.0f} messages in a row"
        case "fan_out":
            return f"{rest:,.0f} of {of:,.0f} agents at a time"
