"""The laws that nodes and gateways keep in virtual time."""

from __future__ import annotations

import random

from benchmarks.scale.simulation import Failover, Settings, fail_over, place, reconnect

NETWORKS = [f"network{n}" for n in range(500)]


def test_only_the_networks_of_a_node_that_dies_move_and_a_new_node_takes_its_share() -> None:
    nodes = [f"node{n}" for n in range(7)]
    before = {name: place(name, nodes) for name in NETWORKS}
    for gone in nodes:
        after = {name: place(name, [node for node in nodes if node != gone]) for name in NETWORKS}
        moved = {name for name in NETWORKS if after[name] != before[name]}
        assert moved == {name for name in NETWORKS if before[name] == gone}
    more = {name: place(name, [*nodes, "new"]) for name in NETWORKS}
    assert {more[name] for name in NETWORKS if more[name] != before[name]} == {"new"}


def test_each_network_of_a_node_that_dies_is_served_again_once_and_not_before_the_lease() -> None:
    for at_once in (1, 4, 100):
        storm = fail_over(Failover(nodes=5, networks=40, at_once=at_once, sessions=3))
        assert len(storm.served_s) == len(storm.moved) > 0
        assert storm.kept
        assert min(storm.served_s) > 5.0


def test_all_clients_of_a_gateway_that_dies_come_back_once_whatever_the_settings() -> None:
    chance = random.Random(94)
    for _ in range(10):
        settings = Settings(
            clients=chance.randint(1, 400),
            gateways=chance.randint(2, 5),
            owners=chance.randint(1, 3),
            owner_s=chance.uniform(0.0001, 0.02),
            patience_s=chance.uniform(1, 20),
            passes_over=True,
            seed=chance.randint(1, 99),
        )
        wave = reconnect(settings, until=3600)
        assert len(wave.joined_s) == settings.clients, settings
        assert wave.attempts >= settings.clients


def test_the_same_seed_is_the_same_wave_and_another_one_is_not() -> None:
    settings = Settings(clients=300, owner_s=0.02, patience_s=3.0, shown_s=1e-5)
    assert reconnect(settings) == reconnect(settings)
    assert reconnect(settings) != reconnect(Settings(**{**vars(settings), "seed": 2}))
