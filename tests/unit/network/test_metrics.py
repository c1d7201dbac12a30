from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from hubbub.network.exposition import render
from hubbub.network.metrics import HubMetrics


def samples(metrics: HubMetrics) -> dict[tuple[str, str], float]:
    """Values by name and label."""
    return {
        (sample.name, ",".join(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(render(metrics).decode())
        for sample in family.samples
    }


def test_counted_values_are_exposed() -> None:
    metrics = HubMetrics()
    metrics.sessions, metrics.messages, metrics.deliveries = 3, 10, 25
    metrics.tokens_in, metrics.tokens_out = 700, 50
    metrics.wakes["direct"] = 4
    metrics.wakes["mention"] = 1
    metrics.turns["finished"] = 2
    values = samples(metrics)
    assert values["hubbub_sessions", ""] == 3
    assert values["hubbub_messages_total", ""] == 10
    assert values["hubbub_deliveries_total", ""] == 25
    assert values["hubbub_tokens_in_total", ""] == 700
    assert values["hubbub_tokens_out_total", ""] == 50
    assert values["hubbub_wakes_total", "direct"] == 4
    assert values["hubbub_wakes_total", "mention"] == 1
    assert values["hubbub_turns_total", "finished"] == 2


def test_labels_distinguish_the_hubs_of_one_process() -> None:
    hubs = [HubMetrics(), HubMetrics()]
    for n, hub in enumerate(hubs, 1):
        hub.labels = {"node": "n1", "network": f"net{n}"}
        hub.committed(10 * n, 0.003)
        hub.wakes["direct"] = n
        hub.passed_on = 5 * n
    text = render(*hubs).decode()
    assert text.count("# TYPE hubbub_messages_total counter") == 1, "one family"
    values = {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert values["hubbub_messages_total", "n1", "net1"] == 10
    assert values["hubbub_messages_total", "n1", "net2"] == 20
    assert values["hubbub_passed_on_total", "n1", "net2"] == 10
    assert values["hubbub_wakes_total", "direct", "n1", "net2"] == 2
    assert values["hubbub_commit_seconds_count", "n1", "net1"] == 1
