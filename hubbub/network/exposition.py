"""The hub's metrics for Prometheus. Imported at the first request for `/metrics`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate

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


_COUNTERS: Sequence[tuple[str, str, Callable[[HubMetrics], float]]] = (
    ("calls", "Operations called", lambda m: m.calls),
    ("messages", "Messages in the log since the start", lambda m: m.messages),
    ("deliveries", "Events pushed to sockets", lambda m: m.deliveries),
    ("passed_on", "Messages forwarded to gateways, once per gateway", lambda m: m.passed_on),
    ("duplicates", "Writes repeated with the same cid", lambda m: m.duplicates),
    ("bad_frames", "Frames refused", lambda m: m.bad_frames),
    ("refused_writes", "Writes that the store refused", lambda m: m.refused),
    ("tokens_in", "Prompt tokens reported by turns", lambda m: m.tokens_in),
    ("tokens_out", "Completion tokens reported by turns", lambda m: m.tokens_out),
)
_GAUGES: Sequence[tuple[str, str, Callable[[HubMetrics], float]]] = (
    ("sessions", "Identified sockets", lambda m: m.sessions),
    ("gateways", "Linked gateways", lambda m: len(m.gateways())),
    ("commit_queue", "Messages and changes waiting for a commit", lambda m: m.waiting()),
)
_BY_LABEL: Sequence[tuple[str, str, str, Callable[[HubMetrics], Mapping[str, int]]]] = (
    ("wakes", "Wake decisions that start a turn", "reason", lambda m: m.wakes),
    ("turns", "Turns that ended", "outcome", lambda m: m.turns),
    ("mod_failures", "Failures of mods", "mod", lambda m: m.mod_failures),
)


def render(*hubs: HubMetrics, others: Sequence[Collector] = ()) -> bytes:
    """The text that Prometheus scrapes. All hubs must have the same label names."""
    registry = CollectorRegistry()
    for each in (*([Exposition(*hubs)] if hubs else []), *others):
        registry.register(each)
    return generate_latest(registry)


class Exposition(Collector):
    """The current metric families of hubs."""

    def __init__(self, *hubs: HubMetrics):
        self._hubs, self._labels = hubs, tuple(hubs[0].labels)

    def collect(self) -> Iterator[Metric]:
        kinds = ((GaugeMetricFamily, _GAUGES), (CounterMetricFamily, _COUNTERS))
        for kind, figures in kinds:
            for name, text, value in figures:
                family = kind(f"hubbub_{name}", text, labels=self._labels)
                for hub in self._hubs:
                    family.add_metric([*hub.labels.values()], value(hub))
                yield family
        for name, text, label, counts in _BY_LABEL:
            counter = CounterMetricFamily(f"hubbub_{name}", text, labels=(*self._labels, label))
            for hub in self._hubs:
                for word, count in sorted(counts(hub).items()):
                    counter.add_metric([*hub.labels.values(), word], count)
            yield counter
        yield self._commits()

    def _commits(self) -> Metric:
        labels, text = self._labels, "Time of one commit"
        family = HistogramMetricFamily("hubbub_commit_seconds", text, labels=labels)
        for hub in self._hubs:
            sums = map(float, accumulate(hub.commits))
            buckets = list(zip((*map(str, COMMIT_BUCKETS), "+Inf"), sums, strict=True))
            family.add_metric([*hub.labels.values()], buckets, hub.commit_seconds)
        return family
