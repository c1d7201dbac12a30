"""What the hub counts, as Prometheus reads it. Imported when `/metrics` is first asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from hubbub.network.metrics import COMMIT_BUCKETS, HubMetrics

__all__ = ["Exposition", "render"]


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


def _labelled(name: str, text: str, label: str, counts: Mapping[str, int]) -> Metric:
    family = CounterMetricFamily(f"hubbub_{name}", text, labels=[label])
    for value, count in sorted(counts.items()):
        family.add_metric([value], count)
    return family
