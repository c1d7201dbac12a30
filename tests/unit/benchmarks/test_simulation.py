"""Invariants of simulated nodes and gateways."""

from __future__ import annotations

import random

from benchmarks.scale.simulation import Failover, Settings, fail_over, place, reconnect

NETWORKS = [f"network{n}" for n in range(500)]


def test_a_dead_or_a_new_node_moves_only_its_own_networks() -> None:
    nodes = [f"node{n}" for n in range(7)]
    before = {name: place(name, nodes) for name in NETWORKS}
    for gone in nodes:
        after = {name: place(name, [node for node in nodes if node != gone]) for name in NETWORKS}
        moved = {name for name in NETWORKS if after[name] != before[name]}
        assert moved == {name for name in NETWORKS if before[name] == gone}
    after = {name: place(name, [*nodes, "new"]) for name in NETWORKS}
    assert {after[name] for name in NETWORKS if after[name] != before[name]} == {"new"}


def test_a_dead_nodes_networks_are_each_served_again_once_after_the_lease() -> None:
    for at_once in (1, 4, 100):
        storm = fail_over(Failover(nodes=5, networks=40, at_once=at_once, sessions=3))
        assert len(storm.served_s) == len(storm.moved) > 0
        assert storm.kept
        assert min(storm.served_s) > 5.0


def test_all_clients_of_a_dead_gateway_reconnect_once_with_any_settings() -> None:
    rng = random.Random(94)
    for _ in range(10):
        settings = Settings(
            clients=rng.randint(1, 400),
            gateways=rng.randint(2, 5),
            owners=rng.randint(1, 3),
            owner_s=rng.uniform(0.0001, 0.02),
            patience_s=rng.uniform(1, 20),
            passes_over=True,
            seed=rng.randint(1, 99),
        )
        wave = reconnect(settings, until=3600)
        assert len(wave.joined_s) == settings.clients, settings
        assert wave.attempts >= settings.clients


def test_a_simulation_is_determined_by_its_seed() -> None:
    settings = Settings(clients=300, owner_s=0.02, patience_s=3.0, shown_s=1e-5)
    assert reconnect(settings) == reconnect(settings)
    assert reconnect(settings) != reconnect(Settings(**{**vars(settings), "seed": 2}))
