"""Figures with their goals, as the table shows them and the JSON keeps them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from pydantic import JsonValue

from benchmarks.stats import Interval, middle, paired_ratio

__all__ = ["Comparison", "Figure", "Goal", "ThreeSides", "at_least", "at_most"]

BUSY = 0.95
"""Share of a core from which the load program counts as the bottleneck."""


@dataclass(frozen=True)
class Goal:
    """A bound on a figure's ratio, or on its value where there is nothing to compare with."""

    kind: Literal["at least", "at most"]
    bound: float
    of: Literal["ratio", "value"] = "ratio"

    def met(self, figure: Figure) -> bool:
        """Raises ValueError if the goal is a ratio and the figure has none."""
        value = figure.ratio if self.of == "ratio" else figure.ours
        if value is None:
            raise ValueError(f"{figure.name} has no ratio")
        return value >= self.bound if self.kind == "at least" else value <= self.bound

    def __str__(self) -> str:
        return f"{'≥' if self.kind == 'at least' else '≤'} {self.bound:g}"


def at_least(bound: float) -> Goal:
    return Goal("at least", bound)


def at_most(bound: float, of: Literal["ratio", "value"] = "ratio") -> Goal:
    return Goal("at most", bound, of)


@dataclass(frozen=True)
class Figure:
    """One line of the table."""

    scenario: str
    name: str
    unit: str
    ours: float
    theirs: float | None = None
    """The other side: the relay, the loop, the small log."""
    ratio: float | None = None
    """The median of ours / theirs over the rounds."""
    goal: Goal | None = None
    ours_rounds: Sequence[float] = ()
    theirs_rounds: Sequence[float] = ()
    """The same, round by round."""

    def as_json(self) -> dict[str, JsonValue]:
        """The figure with a plain `met` beside its goal."""
        value: dict[str, JsonValue] = asdict(self)
        value["met"] = None if self.goal is None else self.goal.met(self)
        return value


@dataclass(frozen=True)
class Comparison:
    """Interleaved rounds of two sides, from which figures are taken."""

    scenario: str
    ours: Sequence[Interval]
    theirs: Sequence[Interval]

    def figure(
        self,
        name: str,
        unit: str,
        of: Callable[[Interval], float],
        goal: Goal | None = None,
    ) -> Figure:
        """One measure of the rounds: medians of both sides and the median of the ratios."""
        return Figure(
            scenario=self.scenario,
            name=name,
            unit=unit,
            ours=middle(self.ours, of),
            theirs=middle(self.theirs, of),
            ratio=paired_ratio(self.ours, self.theirs, of),
            goal=goal,
            ours_rounds=[of(i) for i in self.ours],
            theirs_rounds=[of(i) for i in self.theirs],
        )

    def load_note(self) -> str | None:
        """A warning if the load program may have been the bottleneck."""
        busy = max(middle(side, lambda i: i.load_busy) for side in (self.ours, self.theirs))
        if busy < BUSY:
            return None
        return f"{self.scenario}: the load program used {busy:.0%} of a core; trust the CPU figures"


@dataclass(frozen=True)
class ThreeSides:
    """Interleaved rounds of the relay, of the bare hub, and of `hubbub up` around it."""

    scenario: str
    relay: Sequence[Interval]
    bare: Sequence[Interval]
    up: Sequence[Interval]

    @property
    def against_relay(self) -> Comparison:
        """`hubbub up` against the relay."""
        return Comparison(self.scenario, self.up, self.relay)

    def cpu(self, unit: str, parts: int = 1) -> list[Figure]:
        """What the bare hub uses against the relay, and the command against the bare hub, for each
        of so many parts of a message."""
        bare = Comparison(self.scenario, self.bare, self.relay).figure
        up = Comparison(self.scenario, self.up, self.bare).figure
        return [
            bare(f"the same, bare hub: CPU per {unit}", "us", lambda i: i.cpu_us / parts),
            up(
                f"`hubbub up` against the bare hub: CPU per {unit}",
                "us",
                lambda i: i.cpu_us / parts,
                at_most(1.1),
            ),
        ]
