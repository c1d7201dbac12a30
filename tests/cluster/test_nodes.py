"""Three nodes that share networks, while nodes die, stand still, are drained and started again."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from statistics import median

import pytest

from hubbub.app.cluster import ClusterStatus
from tests.cluster.nodes import WITHIN_S, Cluster, Talk
from tests.postgres_server import PostgresServer, running_postgres

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(3 * WITHIN_S)]
MANY, SOME = 100, 9
LEASES_S = 15.0
"""How long a node stands still: three times as long as it takes to lose what it owns."""


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HUBBUB_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path


@asynccontextmanager
async def running(folder: Path, server: PostgresServer, count: int) -> AsyncIterator[Cluster]:
    cluster = await asyncio.to_thread(Cluster, folder, server, count)
    try:
        await cluster.begin()
        yield cluster
    finally:
        await cluster.stop()


@asynccontextmanager
async def talking(cluster: Cluster, networks: Sequence[str]) -> AsyncIterator[list[Talk]]:
    """Somebody talks in each of these networks; in the end each message is accounted for."""
    urls = {name: [f"ws://{each}" for each in cluster.addresses(name)] for name in networks}
    talks = [Talk(name, urls[name], urls[name]) for name in networks]
    async with AsyncExitStack() as stack:
        for talk in talks:
            await stack.enter_async_context(talk.joined())
        yield talks
        for talk in talks:
            await talk.check(cluster)


def _others_serve(seen: ClusterStatus, node: str) -> bool:
    return all(each.serves and each.owner not in (None, node) for each in seen.networks)


def owners(seen: ClusterStatus) -> dict[str, str | None]:
    return {each.name: each.owner for each in seen.networks}


@pytest.mark.behaviour("R-18")
async def test_a_hundred_networks_go_on_when_a_node_of_three_is_killed(
    folder: Path, server: PostgresServer
) -> None:
    async with running(folder, server, MANY) as cluster:
        lost = await cluster.owned_by("n2")
        assert MANY / 6 < len(lost) < MANY / 2, "each node has its share"
        async with talking(cluster, list(cluster.ports)) as talks:
            await asyncio.gather(*(talk.say() for talk in talks))
            cluster.process("n2").kill()
            killed_at, took = time.monotonic(), dict[str, float]()

            async def goes_on(talk: Talk) -> None:
                await talk.say()
                took[talk.network] = time.monotonic() - killed_at
                await talk.say()

            async with asyncio.timeout(WITHIN_S):
                await asyncio.gather(*map(goes_on, talks))
            seen = await cluster.status()
        assert {owners(seen)[name] for name in lost} == {"n1", "n3"}
    seconds = sorted(took[name] for name in lost)
    print(f"{len(lost)} networks: {median(seconds):.1f} s, at most {seconds[-1]:.1f}")


@pytest.mark.behaviour("R-19")
async def test_a_node_is_drained_and_restarted_and_its_networks_come_back(
    folder: Path, server: PostgresServer
) -> None:
    async with running(folder, server, SOME) as cluster:
        before = owners(await cluster.status())
        async with talking(cluster, list(cluster.ports)) as talks, _load(talks):
            await cluster.command("drain", "n1")
            seen = await cluster.status()
            assert seen.nodes[0].networks == []
            assert seen.nodes[0].drained
            cluster.process("n1").terminate()
            assert "no longer runs here" not in await cluster.ended("n1")
            await cluster.start("n1")
            await cluster.command("undrain", "n1")
            assert owners(await cluster.settled()) == before
            cluster.process("n3").terminate()  # without a drain
            await cluster.ended("n3")
            assert [node.name for node in (await cluster.status()).nodes] == ["n1", "n2"]


@pytest.mark.behaviour("R-19")
async def test_a_network_moves_under_load_and_sockets_at_gateways_stay_open(
    folder: Path, server: PostgresServer
) -> None:
    async with running(folder, server, 2) as cluster:
        gateways = [await cluster.gateway("net0", name) for name in ("g1", "g2")]
        talk = Talk("net0", gateways[:1], gateways[1:])
        async with talk.joined():
            async with _load([talk]):
                for node in ("n1", "n2", "n3", "n1"):
                    await cluster.command("move", "net0", node)
                    seen = await cluster.until(lambda seen: seen.networks[0].gateways != [])
                    assert owners(seen)["net0"] == node
                    await talk.ledger.more_acks(20)
                await cluster.command("move", "net0", "--anywhere")
            await talk.check(cluster)
        assert talk.ledger.disconnects == 0
        owner = owners(await cluster.status())["net0"]
        assert owner is not None
        counted, held = await cluster.figures(owner), await cluster.figures("g1")
        assert counted["hubbub_gateways", owner, "net0"] == 2
        assert counted["hubbub_passed_on_total", owner, "net0"] > 0
        assert counted["hubbub_cluster_nodes", owner] == 3
        assert counted["hubbub_cluster_networks_without_owner", owner] == 0
        assert held["hubbub_gateway_linked", "g1"] == 1
        assert held["hubbub_gateway_owner_changes_total", "g1"] >= 4
        assert held["hubbub_gateway_entries_total", "g1"] > 0
        told = json.loads(await cluster.command("status", "--json"))
        assert told["networks"][0]["gateways"] == ["g1", "g2"]
        assert told["networks"][0]["moved_to"] is None


@pytest.mark.behaviour("R-20")
async def test_a_node_that_stood_still_writes_nothing_and_gets_its_share_again(
    folder: Path, server: PostgresServer
) -> None:
    async with running(folder, server, SOME) as cluster:
        before = owners(await cluster.status())
        async with talking(cluster, list(cluster.ports)) as talks, _load(talks):
            node = max(before.values(), key=[*before.values()].count)
            assert node is not None
            process = cluster.process(node)
            process.send_signal(signal.SIGSTOP)
            await cluster.until(lambda seen: _others_serve(seen, node))
            await asyncio.sleep(LEASES_S)
            process.send_signal(signal.SIGCONT)
            assert owners(await cluster.settled()) == before


@pytest.mark.behaviour("R-20")
async def test_a_postgres_that_is_killed_loses_nothing_and_all_networks_are_served_again(
    folder: Path, server: PostgresServer
) -> None:
    async with (
        running(folder, server, SOME) as cluster,
        talking(cluster, list(cluster.ports)) as talks,
        _load(talks),
    ):
        await talks[0].ledger.more_acks(10)
        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(server.start)
        for talk in talks:
            await talk.ledger.more_acks(10)
        await cluster.settled()


async def test_a_name_is_one_nodes_and_a_node_says_so(folder: Path, server: PostgresServer) -> None:
    async with running(folder, server, 1) as cluster:
        again = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "hubbub", "node", str(folder / "networks"), "--name", "n1"),
            *("--listen", "127.0.0.4", "--cluster", cluster.url),
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(WITHIN_S):
            _, err = await again.communicate()
        assert again.returncode == 2
        assert b"a node named n1 already exists" in err


@asynccontextmanager
async def _load(talks: Sequence[Talk]) -> AsyncIterator[None]:
    """They go on talking, each as soon as the last was confirmed."""
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        for talk in talks:
            tasks.create_task(talk.say_until(stop))
        try:
            yield
        finally:
            stop.set()
