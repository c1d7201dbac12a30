"""What the hub counts, as plain numbers; `/metrics` reads them when it is asked.

Counting on the way of a message must cost nothing, so nothing here locks: the hub's loop is the
only writer.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

__all__ = ["HubMetrics"]

COMMIT_BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)
"""Seconds."""


class HubMetrics(Collector):
    """Counters of one hub, and their Prometheus form."""

    def __init__(self) -> None:
        self.sessions = 0
        self.waiting: Callable[[], int] = lambda: 0
        """Tells how many messages and changes wait for a commit."""
        self.calls = 0
        self.messages = 0
        self.deliveries = 0
        self.duplicates = 0
        self.bad_frames = 0
        self.refused = 0
        self.wakes: Counter[str] = Counter()
        self.turns: Counter[str] = Counter()
        self.tokens_in = 0
        self.tokens_out = 0
        self._commits = [0] * (len(COMMIT_BUCKETS) + 1)
        self._commit_seconds = 0.0
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def committed(self, seconds: float) -> None:
        """One transaction took `seconds`."""
        self._commits[bisect_left(COMMIT_BUCKETS, seconds)] += 1
        self._commit_seconds += seconds

    def render(self) -> bytes:
        """The text that Prometheus scrapes."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        yield GaugeMetricFamily("hubbub_sessions", "Identified sockets", self.sessions)
        yield GaugeMetricFamily(
            "hubbub_commit_queue", "Messages and changes waiting for a commit", self.waiting()
        )
        for name, text, value in (
            ("calls", "Operations asked for", self.calls),
            ("messages", "Messages in the log since the start", self.messages),
            ("deliveries", "Events pushed to sockets", self.deliveries),
            ("duplicates", "Writes repeated with a known cid", self.duplicates),
            ("bad_frames", "Frames refused", self.bad_frames),
            ("refused_writes", "Writes that the store could not keep", self.refused),
            ("tokens_in", "Prompt tokens reported by turns", self.tokens_in),
            ("tokens_out", "Completion tokens reported by turns", self.tokens_out),
        ):
            yield CounterMetricFamily(f"hubbub_{name}", text, value)
        yield _labelled("wakes", "Wake decisions that start a turn", "reason", self.wakes)
        yield _labelled("turns", "Turns that ended", "outcome", self.turns)
        yield self._commit_histogram()

    def _commit_histogram(self) -> Metric:
        total, buckets = 0, []
        for edge, count in zip((*map(str, COMMIT_BUCKETS), "+Inf"), self._commits, strict=True):
            total += count
            buckets.append((edge, float(total)))
        return HistogramMetricFamily(
            "hubbub_commit_seconds", "Time of one commit", buckets, self._commit_seconds
        )


def _labelled(name: str, text: str, label: str, counts: Counter[str]) -> Metric:
    family = CounterMetricFamily(f"hubbub_{name}", text, labels=[label])
    for value, count in sorted(counts.items()):
        family.add_metric([value], count)
    return family
