"""What the hub counts, as plain numbers; `exposition` makes what `/metrics` shows of them.

Counting on the way of a message must cost nothing, so nothing here locks: the hub's loop is the
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
        """Of all that is shown: node and network, where one process has several hubs."""
        self.sessions = 0
        self.waiting: Callable[[], int] = lambda: 0
        """Tells how many messages and changes wait for a commit."""
        self.gateways: Callable[[], Sequence[str]] = tuple
        """Tells the names of the gateways that are linked."""
        self.passed_on = 0
        """Entries that gateways were told of, each counted once for each."""
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
        """How many took no longer than each of `COMMIT_BUCKETS`, and longer than the one before."""
        self.commit_seconds = 0.0

    def committed(self, messages: int, seconds: float) -> None:
        """One transaction with so many messages took `seconds`."""
        self.messages += messages
        self.commits[bisect_left(COMMIT_BUCKETS, seconds)] += 1
        self.commit_seconds += seconds

    def turn_ended(self, outcome: str, steps: Iterable[Step]) -> None:
        """A turn is over, and this is what it has spent."""
        self.turns[outcome] += 1
        for step in steps:
            self.tokens_in += step.tokens_in
            self.tokens_out += step.tokens_out
