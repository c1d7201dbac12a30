"""A whole cluster on one machine, to try it: Postgres, nodes, and a gateway for each network."""

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
from hubbub.app.supervisor import Supervisor, Unit
from hubbub.config.loader import load
from hubbub.config.units import ListenAddress

__all__ = ["DevCluster", "dev_cluster"]

CLUSTER, TOKENS = "HUBBUB_CLUSTER", "HUBBUB_GATEWAY_TOKEN"
TOKEN = secrets.token_urlsafe(24)
GATEWAY_PORT = 20
"""So many above the network's own port its gateway listens."""
GRACE_S = 40.0
"""Seconds that a node has to give away what it owns."""


@dataclass(frozen=True)
class DevCluster:
    """What was started."""

    url: str
    """Of the cluster's database."""
    nodes: Sequence[str]
    gateways: dict[str, str]
    """host:port by network."""


async def dev_cluster(
    configs: Sequence[Path],
    count: int,
    report: Report,
    up: Callable[[DevCluster], None],
) -> None:
    """Run these networks on `count` nodes until a signal comes; `up` is told when all is begun.
    Their logs are new ones, which end with it.

    Raises UserError if there is no Postgres here, or a network cannot be run.
    """
    stop = asyncio.Event()
    with (
        tempfile.TemporaryDirectory(prefix="hubbub-postgres-") as data,  # another user's, perhaps
        tempfile.TemporaryDirectory(prefix="hubbub-cluster-") as folder,
    ):
        server = PostgresServer(Path(data), tied=True)
        try:
            server.start()
            with stopping(stop, report, signals=True):
                made = _networks(configs, Path(folder), server)
                nodes = {f"n{n}": f"127.0.0.{n}" for n in range(1, count + 1)}
                for network in made:
                    for host in nodes.values():
                        check_port(ListenAddress(host, network.port))
                units = _units(made, nodes, server.url("cluster"), Path(folder))
                async with background(Supervisor(units, report, grace_s=GRACE_S).run()):
                    gateways = {each.name: each.gateway for each in made}
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
    """Write over each config what is different here: its store, and its gateways' token."""
    server.new_database("cluster")
    (folder / "networks").mkdir()
    made = list[_DevNetwork]()
    for n, path in enumerate(configs):
        config = load(path)
        name, port = config.file.network.name, config.address.port
        store = server.new_database(f"network{n}")
        over = {"store": store, "gateway_token": TOKEN}
        text = json.dumps({"include": [str(config.path)], "network": over})
        (folder / "networks" / f"{n}.yaml").write_text(text)
        made.append(_DevNetwork(name, port))
    return made


def _units(
    networks: Sequence[_DevNetwork], nodes: Mapping[str, str], url: str, folder: Path
) -> Sequence[Unit]:
    """`nodes` with the hosts that they listen on."""
    command, configs = [sys.executable, "-m", "hubbub"], str(folder / "networks")
    found = [
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
        found.append(Unit((name,), [*command, "gateway", "--name", name, *listen], {TOKENS: TOKEN}))
    return found
