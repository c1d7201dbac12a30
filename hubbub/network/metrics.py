"""The hub's counters, as plain numbers; `exposition` renders them for `/metrics`.

Counting must add nothing to the cost of a message, so there are no locks: the hub's loop is the
only writer.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from hubbub.protocol.turns import Step

__all__ = ["COMMIT_BUCKETS", "HubMetrics"]

COMMIT_BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)
"""Seconds."""


class HubMetrics:
    """Counters of one hub."""

    def __init__(self) -> None:
        self.labels: Mapping[str, str] = {}
        """Labels of all metrics: node and network, if a process has several hubs."""
        self.sessions = 0
        self.waiting: Callable[[], int] = lambda: 0
        """Returns the number of messages and changes that wait for a commit."""
        self.gateways: Callable[[], Sequence[str]] = tuple
        """Returns the names of the linked gateways."""
        self.passed_on = 0
        """Entries forwarded to gateways, counted once per gateway."""
        self.calls = 0
        self.messages = 0
        self.deliveries = 0
        self.duplicates = 0
        self.bad_frames = 0
        self.refused = 0
        self.wakes: defaultdict[str, int] = defaultdict(int)  # a Counter is slower to add to
        self.turns: Counter[str] = Counter()
        self.mod_failures: Counter[str] = Counter()
        self.tokens_in = 0
        self.tokens_out = 0
        self.commits = [0] * (len(COMMIT_BUCKETS) + 1)
        """Number of commits in each interval of `COMMIT_BUCKETS`."""
        self.commit_seconds = 0.0

    def committed(self, messages: int, seconds: float) -> None:
        """Count a transaction with this number of messages."""
        self.messages += messages
        self.commits[bisect_left(COMMIT_BUCKETS, seconds)] += 1
        self.commit_seconds += seconds

    def turn_ended(self, outcome: str, steps: Iterable[Step]) -> None:
        """Count a turn that ended, and its tokens."""
        self.turns[outcome] += 1
        for step in steps:
            self.tokens_in += step.tokens_in
            self.tokens_out += step.tokens_out
