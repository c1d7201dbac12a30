"""A whole cluster on one machine for trying it: Postgres, nodes, and a gateway per network."""

from __future__ import annotations

import asyncio
import json
import secrets
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hubbub.app.lifecycle import Report
from hubbub.app.postgres_server import PostgresServer
from hubbub.app.preflight import check_port
from hubbub.app.running import background, stopping
from hubbub.app.supervisor import Supervisor
from hubbub.app.units import Unit
from hubbub.config.loader import load
from hubbub.config.units import ListenAddress

__all__ = ["DevCluster", "dev_cluster"]

CLUSTER, TOKENS = "HUBBUB_CLUSTER", "HUBBUB_GATEWAY_TOKEN"
TOKEN = secrets.token_urlsafe(24)
GATEWAY_PORT = 20
"""Offset of a gateway's port from its network's port."""
GRACE_S = 40.0
"""Seconds for a node to give away its networks."""


@dataclass(frozen=True)
class DevCluster:
    """A running cluster."""

    url: str
    """The URL of the cluster's database."""
    nodes: Sequence[str]
    gateways: dict[str, str]
    """host:port by network."""


async def dev_cluster(
    configs: Sequence[Path],
    count: int,
    report: Report,
    up: Callable[[DevCluster], None],
) -> None:
    """Run these networks on `count` nodes until a signal arrives; calls `up` when everything has
    started. Their logs are new, and are deleted at the end.

    Raises `UserError` if Postgres is not installed, or a network cannot run.
    """
    stop = asyncio.Event()
    with (
        tempfile.TemporaryDirectory(prefix="hubbub-postgres-") as data,  # possibly another user's
        tempfile.TemporaryDirectory(prefix="hubbub-cluster-") as folder,
    ):
        server = PostgresServer(Path(data), tied=True)
        try:
            server.start()
            with stopping(stop, report, signals=True):
                networks = _networks(configs, Path(folder), server)
                nodes = {f"n{n}": f"127.0.0.{n}" for n in range(1, count + 1)}
                for network in networks:
                    for host in nodes.values():
                        check_port(ListenAddress(host, network.port))
                units = _units(networks, nodes, server.url("cluster"), Path(folder))
                async with background(Supervisor(units, report, grace_s=GRACE_S).run()):
                    gateways = {each.name: each.gateway for each in networks}
                    up(DevCluster(server.url("cluster"), list(nodes), gateways))
                    await stop.wait()
        finally:
            server.stop()


@dataclass(frozen=True)
class _DevNetwork:
    name: str
    port: int

    @property
    def gateway(self) -> str:
        return f"127.0.0.1:{self.port + GATEWAY_PORT}"


def _networks(
    configs: Sequence[Path], folder: Path, server: PostgresServer
) -> Sequence[_DevNetwork]:
    """Write configs that override each network's store and gateway token."""
    server.new_database("cluster")
    (folder / "networks").mkdir()
    networks = list[_DevNetwork]()
    for n, path in enumerate(configs):
        config = load(path)
        name, port = config.file.network.name, config.address.port
        store = server.new_database(f"network{n}")
        over = {"store": store, "gateway_token": TOKEN}
        text = json.dumps({"include": [str(config.path)], "network": over})
        (folder / "networks" / f"{n}.yaml").write_text(text)
        networks.append(_DevNetwork(name, port))
    return networks


def _units(
    networks: Sequence[_DevNetwork], nodes: Mapping[str, str], url: str, folder: Path
) -> Sequence[Unit]:
    """The processes of nodes and gateways; `nodes` are hosts to listen on, by node."""
    command, configs = [sys.executable, "-m", "hubbub"], str(folder / "networks")
    units = [
        Unit(
            (node,),
            [*command, "node", configs, "--name", node, "--listen", host],
            {CLUSTER: url},
        )
        for node, host in nodes.items()
    ]
    for network in networks:
        hubs = ",".join(f"{host}:{network.port}" for host in nodes.values())
        listen = ("--hubs", hubs, "--listen", network.gateway)
        name = f"gateway-{network.name}"
        units.append(Unit((name,), [*command, "gateway", "--name", name, *listen], {TOKENS: TOKEN}))
    return units
