"""The states of a task, and what leads from one to the other: one table.

            claim      finish
    open ---------> claimed --------> done
      ^               |                 |
      |    release    |    cancel       |  reopen
      +---------------+---------> cancelled ----> open

A task that has nobody, or somebody, and waits for others that are not over is told as `blocked`:
that is no step of its own, it follows from its dependencies and ends with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

__all__ = ["ACTIONS", "OVER", "Action", "Rule", "Stage", "State"]

State = Literal["open", "claimed", "blocked", "done", "cancelled"]
"""As it is told."""
Stage = Literal["open", "claimed", "done", "cancelled"]
"""As it is kept: without what follows from other tasks."""
Action = Literal["claim", "assign", "release", "finish", "cancel", "reopen"]
Whose = Literal["anybody", "holder"]

OVER: frozenset[str] = frozenset({"done", "cancelled"})


class Rule(NamedTuple):
    """What one action needs and makes."""

    comes_from: frozenset[State]
    leads_to: Stage
    who: Whose
    """Who may do it while somebody holds the task: anybody who reads it, or only the holder, who
    created it, and owners. While nobody holds it, anybody."""
    word: str
    """What has happened then, for the history and signals."""


ACTIONS: Mapping[Action, Rule] = {
    "claim": Rule(frozenset({"open"}), "claimed", "holder", "claimed"),
    "assign": Rule(frozenset({"open", "claimed", "blocked"}), "claimed", "holder", "assigned"),
    "release": Rule(frozenset({"claimed", "blocked"}), "open", "holder", "released"),
    "finish": Rule(frozenset({"open", "claimed"}), "done", "holder", "finished"),
    "cancel": Rule(frozenset({"open", "claimed", "blocked"}), "cancelled", "holder", "cancelled"),
    "reopen": Rule(frozenset({"done", "cancelled"}), "open", "anybody", "reopened"),
}
