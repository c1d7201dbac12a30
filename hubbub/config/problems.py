"""Problems of a config as sentences: the place, the expected value, the nearest name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from hubbub.errors import ConfigError
from hubbub.wording import near

__all__ = ["ConfigProblems", "closest", "listing", "nearest", "shown_path"]


class ConfigProblems(ConfigError):
    """All problems of a config, one line each.

    `problems` are sorted by file and line.
    """

    def __init__(self, problems: Iterable[ConfigError]):
        unique = {str(problem): problem for problem in problems}
        self.problems: Sequence[ConfigError] = sorted(unique.values(), key=_order)
        super().__init__("\n".join(map(str, self.problems)))


def _order(problem: ConfigError) -> tuple[str, int, str]:
    return str(problem.path or ""), problem.line or 0, problem.message


def nearest(name: str, valid: Iterable[str]) -> str:
    """The end of a sentence about an unknown name: the nearest valid one, or all of them."""
    names = sorted(set(valid))
    match = closest(name, names)
    if match is not None:
        return f"; did you mean '{match}'?"
    return f"; valid: {listing(names)}" if names else ""


def closest(name: str, valid: Iterable[str]) -> str | None:
    """The valid name that `name` probably means, if any."""
    return next(iter(near(name, valid)), None)


def listing(names: Iterable[str], limit: int = 12) -> str:
    """`a, b, c`, cut after `limit` names."""
    ordered = sorted(names)
    shown = ", ".join(ordered[:limit])
    return f"{shown}, … ({len(ordered)} in all)" if len(ordered) > limit else shown


def shown_path(path: Path) -> str:
    """The path for messages: relative if it is inside the current directory."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
