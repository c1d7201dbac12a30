"""What is wrong with a config, as sentences: place, what was expected, the nearest name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from hubbub.errors import ConfigError
from hubbub.wording import near

__all__ = ["ConfigProblems", "closest", "listing", "nearest", "shown_path"]


class ConfigProblems(ConfigError):
    """Everything that is wrong with a config, reported together: one line each.

    `problems` are in order of file and line.
    """

    def __init__(self, problems: Iterable[ConfigError]):
        unique = {str(problem): problem for problem in problems}
        self.problems: Sequence[ConfigError] = sorted(unique.values(), key=_order)
        super().__init__("\n".join(map(str, self.problems)))


def _order(problem: ConfigError) -> tuple[str, int, str]:
    return str(problem.path or ""), problem.line or 0, problem.message


def nearest(name: str, valid: Iterable[str]) -> str:
    """The end of a sentence about a wrong name: the nearest valid one, or all if none is near."""
    names = sorted(set(valid))
    meant = closest(name, names)
    if meant is not None:
        return f"; did you mean '{meant}'?"
    return f"; valid: {listing(names)}" if names else ""


def closest(name: str, valid: Iterable[str]) -> str | None:
    """The valid name that `name` was probably meant to be, if there is one."""
    return next(iter(near(name, valid)), None)


def listing(names: Iterable[str], limit: int = 12) -> str:
    """`a, b, c`, cut after `limit` names."""
    known = sorted(names)
    shown = ", ".join(known[:limit])
    return f"{shown}, … ({len(known)} in all)" if len(known) > limit else shown


def shown_path(path: Path) -> str:
    """The path as the user would write it: relative if it lies under the current directory."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
