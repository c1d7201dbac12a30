"""What the hub counts, as plain numbers; `/metrics` reads them when it is asked.

Counting on the way of a message must cost nothing, so nothing here locks: the hub's loop is the
only writer.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from hubbub.protocol.turns import Step

__all__ = ["Exposition", "HubMetrics", "render"]


class HubMetrics:
    """Counters of one hub."""

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


# What the hub counts, as Prometheus reads it.


def render(metrics: HubMetrics) -> bytes:
    """The text that Prometheus scrapes."""
    registry = CollectorRegistry()
    registry.register(Exposition(metrics))
    return generate_latest(registry)


class Exposition(Collector):
    """The families of a hub's metrics, as they are now."""

    def __init__(self, metrics: HubMetrics):
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        m = self._metrics
        yield GaugeMetricFamily("hubbub_sessions", "Identified sockets", m.sessions)
        yield GaugeMetricFamily(
            "hubbub_commit_queue", "Messages and changes waiting for a commit", m.waiting()
        )
        for name, text, value in (
            ("calls", "Operations asked for", m.calls),
            ("messages", "Messages in the log since the start", m.messages),
            ("deliveries", "Events pushed to sockets", m.deliveries),
            ("duplicates", "Writes repeated with a known cid", m.duplicates),
            ("bad_frames", "Frames refused", m.bad_frames),
            ("refused_writes", "Writes that the store could not keep", m.refused),
            ("tokens_in", "Prompt tokens reported by turns", m.tokens_in),
            ("tokens_out", "Completion tokens reported by turns", m.tokens_out),
        ):
            yield CounterMetricFamily(f"hubbub_{name}", text, value)
        yield _labelled("wakes", "Wake decisions that start a turn", "reason", m.wakes)
        yield _labelled("turns", "Turns that ended", "outcome", m.turns)
        yield _labelled("mod_failures", "Failures of mods", "mod", m.mod_failures)
        yield self._commits()

    def _commits(self) -> Metric:
        total, buckets = 0, []
        edges = (*map(str, COMMIT_BUCKETS), "+Inf")
        for edge, count in zip(edges, self._metrics.commits, strict=True):
            total += count
            buckets.append((edge, float(total)))
        return HistogramMetricFamily(
            "hubbub_commit_seconds", "Time of one commit", buckets, self._metrics.commit_seconds
        )


def _labelled(name: str, text: str, label: str, counts: Counter[str]) -> Metric:
    family = CounterMetricFamily(f"hubbub_{name}", text, labels=[label])
    for value, count in sorted(counts.items()):
        family.add_metric([value], count)
    return family


COMMIT_BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)
"""Seconds."""
