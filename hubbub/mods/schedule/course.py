"""How a reminder goes on, once it has come or the hub has started. Pure."""

from __future__ import annotations

from hubbub.mods.schedule.table import Row
from hubbub.mods.schedule.when import Every

__all__ = ["by_the_clock", "following", "left"]


def following(current: Row, said: Row, now: float) -> Row | None:
    """The reminder as it goes on after an occurrence; None: it is over."""
    if current.due != said.due:
        return current  # somebody has resumed it meanwhile
    try:
        rule = said.rule
    except ValueError:
        return current._replace(paused=True, problem=f"the time zone {said.zone} is not known")
    times = None if current.times is None else current.times - 1
    due = rule.next(max(now, said.due)) if rule.repeats else None
    if due is None or times == 0 or (current.until is not None and due > current.until):
        return None
    return current._replace(due=due, times=times)


def by_the_clock(row: Row, now: float) -> Row:
    """The reminder as the clock is now: it may have been set back meanwhile. An occurrence that was
    said before is not said again."""
    try:
        rule = row.rule
        due = rule.next(now) if rule.repeats else None
    except ValueError:
        return row
    return row if due is None or row.due <= due else row._replace(due=due)


def left(row: Row, now: float) -> float | None:
    """Seconds that are left of a wait (`in 10m`, `every 1h`), and never more than it was to last,
    whatever the clock was set to; below zero: it is late. None: it comes at a time of day."""
    try:
        rule = row.rule
    except ValueError:
        return None
    if isinstance(rule, Every):
        return min(row.due - now, rule.seconds)
    if row.at.lower().startswith("in "):
        return min(row.due - now, row.due - row.start)
    return None
