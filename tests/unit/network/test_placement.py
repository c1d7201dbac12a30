"""Placement of networks on nodes: deterministic, with few moves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from hypothesis import given
from hypothesis import strategies as st

from hubbub.network.cluster.placement import Cluster, ClusterNode, NetworkOwner, NodeNetwork

NAMES = [f"net{n}" for n in range(40)]
NODES = st.sets(st.sampled_from(["n1", "n2", "n3", "n4", "n5"]), min_size=1)


def cluster(
    nodes: Collection[str],
    *,
    networks: Collection[str] = NAMES,
    problems: Mapping[tuple[str, str], str] | None = None,
    moves: Mapping[str, str] | None = None,
    drained: Collection[str] = (),
    gone: Collection[str] = (),
) -> Cluster:
    def on(node: str) -> ClusterNode:
        problem_of = {name: (problems or {}).get((node, name), "") for name in networks}
        hosted = {name: NodeNetwork(name, 4820, problem=text) for name, text in problem_of.items()}
        return ClusterNode(node, "", hosted, node not in gone, True)

    return Cluster({node: on(node) for node in nodes}, {}, moves or {}, drained)


def places(current: Cluster) -> Mapping[str, str | None]:
    return {name: current.placed(name) for name in NAMES}


@given(NODES, st.data())
def test_a_leaving_node_moves_only_its_own_networks(nodes: set[str], data: st.DataObject) -> None:
    gone = data.draw(st.sampled_from(sorted(nodes)))
    before, after = places(cluster(nodes)), places(cluster(nodes, gone=[gone]))
    for name, node in before.items():
        if node == gone:
            assert after[name] in (nodes - {gone}) if len(nodes) > 1 else after[name] is None
        else:
            assert after[name] == node


@given(NODES, NODES, st.dictionaries(st.sampled_from(NAMES), st.sampled_from(["n1", "n2", "n9"])))
def test_a_drained_node_owns_nothing_unless_no_other_node_is_alive(
    nodes: set[str], drained: set[str], moves: dict[str, str]
) -> None:
    for name, node in places(cluster(nodes, drained=drained, moves=moves)).items():
        assert node in (nodes - drained or nodes)
        if moves.get(name) in (nodes - drained or nodes):
            assert node == moves[name]


def test_networks_are_spread_evenly() -> None:
    names = [f"net{n}" for n in range(1000)]
    current = cluster(["n1", "n2", "n3"], networks=names)
    counts = Counter(current.placed(name) for name in names)
    assert all(280 < counts[node] < 390 for node in ("n1", "n2", "n3")), counts


def test_a_node_that_failed_to_run_a_network_comes_last() -> None:
    nodes, moves = ["n1", "n2"], {"net0": "n1"}
    assert cluster(nodes, moves=moves).placed("net0") == "n1"
    port = {("n1", "net0"): "the port is in use"}
    assert cluster(nodes, moves=moves, problems=port).placed("net0") == "n2"
    both = {**port, ("n2", "net0"): "the port is in use"}
    assert cluster(nodes, moves=moves, problems=both).placed("net0") == "n1"


def test_a_network_without_a_live_node_is_not_placed() -> None:
    assert cluster(["n1"]).placed("unknown") is None
    assert cluster(["n1"], gone=["n1"]).placed("net0") is None


def test_ownership_follows_the_locks_in_postgres() -> None:
    current = cluster(["n1", "n2"])
    owners = {
        "net1": NetworkOwner("n2", "hubbub node n2 on b"),
        "net2": NetworkOwner("", "hubbub 7 on a"),
    }
    current = Cluster(current.nodes, owners, {}, ())
    assert (current.owned_by("n1"), current.owned_by("n2")) == ([], ["net1"])
    assert (current.owner_of("net2"), current.owner_of("net3")) == (owners["net2"], None)
    assert [current.serves(name) for name in ("net1", "net2", "net3")] == [False, True, False]
