"""Where the steps of a turn and of its sub-agents are numbered. Pure.

A turn's own steps are numbered from 1 on, those of its sub-agents (`fork`) from `APART` on: each
has a range of its own, so that all of them can be recorded side by side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hubbub.agents.tools.ways_out import FORK
from hubbub.agents.turn.first_call import NOT_FIRST
from hubbub.protocol.turns import Step

__all__ = ["APART", "DEEPEST", "Place", "apart", "forks", "step_names"]

APART = 10_000
"""Numbers of steps from here on are those of sub-agents."""
DEEPEST = 2
"""Sub-agents of sub-agents have none."""
_OWN_STEPS = 1000
"""Numbers that a sub-agent has for its own steps."""
_MOST = 16
_BLOCKS = (_OWN_STEPS * (1 + _MOST), _OWN_STEPS)
"""Numbers that a sub-agent of the first and the second depth has, its own sub-agents included."""
_NO_HELPER = ("unknown_tool", "too_many_helpers", NOT_FIRST)
"""Failures of calls that have begun none."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the steps of a turn or a sub-agent are numbered: from `base` + 1 on."""

    base: int = 0
    depth: int = 0
    """0: the turn itself."""

    def child(self, ordinal: int) -> Place:
        """The place of its `ordinal`th sub-agent, from 1."""
        if self.depth == 0:
            return Place(APART + (ordinal - 1) * _BLOCKS[0], 1)
        return Place(self.base + ordinal * _BLOCKS[1], DEEPEST)

    def holds(self, n: int) -> bool:
        """Whether step `n` is its own, and not one of a sub-agent."""
        return self.base < n <= self.base + (APART - 1 if self.depth == 0 else _OWN_STEPS - 1)


def apart(steps: Sequence[Step]) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
    """The steps of the turn itself, and those of its sub-agents."""
    return tuple(s for s in steps if s.n < APART), tuple(s for s in steps if s.n >= APART)


def forks(steps: Sequence[Step]) -> list[tuple[int, int]]:
    """The calls that begin sub-agents, in order: number of the step, and place in it."""
    return [
        (step.n, index)
        for step in steps
        for index, call in enumerate(step.calls)
        if call.name == FORK and call.error not in _NO_HELPER
    ]


def step_names(steps: Sequence[Step]) -> dict[int, str]:
    """What people call the recorded steps of a turn, by their numbers: `2`, or `1 of helper 1 of
    step 2`.
    """
    return dict(_named(steps, Place(), ""))


def _named(steps: Sequence[Step], place: Place, whose: str) -> Iterator[tuple[int, str]]:
    mine = [step for step in steps if place.holds(step.n)]
    names = {step.n: f"{step.n - place.base}{whose}" for step in mine}
    yield from names.items()
    if place.depth < DEEPEST:
        for ordinal, (n, _) in enumerate(forks(mine), 1):
            child = f" of helper {ordinal} of step {names[n]}"
            yield from _named(steps, place.child(ordinal), child)
