"""A node: one process that runs its share of many networks, whose stores are in one Postgres.

    state in Postgres -> placement of each network -> take networks without an owner, give away
    networks that are placed elsewhere

A network runs as with `hubbub up --standby`, alongside others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import psycopg
from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from hubbub.app.lifecycle import (
    AgentDied,
    AgentGivenUp,
    AgentOutput,
    AgentStarted,
    AgentStuck,
    LifecycleEvent,
    NetworkLeft,
    NetworkTaken,
    NetworkUp,
    NodeUp,
    Report,
    StandingBy,
    Stopping,
)
from hubbub.app.metrics import Figures, serve_metrics
from hubbub.app.network import NodePlace, serve
from hubbub.app.preflight import check_models, check_programs, load_valid
from hubbub.app.running import stopping
from hubbub.config.loader import LoadedConfig
from hubbub.config.paths import POSTGRES, check_postgres_url, shown_store, without_password
from hubbub.config.problems import shown_path
from hubbub.config.units import ListenAddress
from hubbub.errors import HubbubError, StoreUnavailable, UserError
from hubbub.logs import get_logger
from hubbub.network.cluster.placement import Cluster, NodeNetwork
from hubbub.network.exposition import render
from hubbub.network.store.postgres import cluster
from hubbub.network.store.postgres.link import Link
from hubbub.network.store.postgres.session import PostgresSession
from hubbub.waiting import first_error

__all__ = ["Node", "load_networks"]

log = get_logger(__name__)

LOOK_S = 0.5
"""Seconds between queries of the cluster's state."""
MOST_MOVING = 4
"""Networks that are given away at a time, and that are started at a time; the rest keep running."""
AGAIN_S = 5.0
"""Seconds before a network that failed to start is retried."""
LEAVE_WITHIN_S = 30.0
"""Seconds that a stopping node waits for others to take its networks."""


@dataclass
class _HostedNetwork:
    """A network that this node can run, whether or not it does."""

    config: LoadedConfig
    database: str
    place: NodePlace
    task: asyncio.Task[None] | None = None
    stop: asyncio.Event | None = None
    url: str = ""
    """Its address while it listens here."""
    problem: str = ""
    not_before: float = 0.0

    @property
    def name(self) -> str:
        return self.config.file.network.name

    @property
    def service(self) -> NodeNetwork:
        gateways = self.place.metrics.gateways() if self.place.metrics else ()
        return NodeNetwork(
            self.database,
            self.config.address.port,
            listening=bool(self.url and self.stop is not None and not self.stop.is_set()),
            problem=self.problem,
            gateways=tuple(gateways),
        )


class Node:
    """A node of a cluster; see `run`."""

    def __init__(
        self,
        name: str,
        url: str,
        networks: Mapping[str, LoadedConfig],
        report: Report,
        *,
        host: str = "",
        with_agents: bool = True,
    ):
        """`url` is the cluster's database, `networks` are the node's networks by database, `host`
        is the host they listen on."""
        self.name, self._url, self._host = name, url, host
        self._report, self._with_agents = report, with_agents
        hosted = (
            _HostedNetwork(config, database, NodePlace(name))
            for database, config in networks.items()
        )
        self.networks = {network.name: network for network in hosted}
        self._link = Link(self._connect)
        self._written: Mapping[str, NodeNetwork] = {}
        self._leaving, self._outage = False, ""
        self._given: set[str] = set()
        self._look_again = asyncio.Event()
        self._patient_until = 0.0
        self._taken = self._left = 0
        self.cluster: Cluster | None = None
        """The last state seen; None if Postgres does not answer."""

    async def run(self, *, metrics: str = "", signals: bool = False) -> None:
        """Run the networks placed here until cancelled, or until a signal, then hand them over.
        Serve metrics on `metrics` (host:port).

        Raises `UserError` if the cluster's database cannot be used, or has another node of this
        name.
        """
        stop = asyncio.Event()
        self._link.start()
        try:
            with stopping(stop, self._report, signals):
                await self._look()
                self._report(NodeUp(self.name, tuple(self.networks)))
                async with (
                    serve_metrics(metrics, self.rendered),
                    asyncio.TaskGroup() as self._tasks,
                ):
                    await self._until(stop.is_set)
                    await self._leave()
        finally:
            await self._link.close()

    # The cluster's state ----------------------------------------------------------------------

    def _connect(self) -> PostgresSession:
        session = cluster.connected_to_cluster(self._url, self.name)
        try:
            if not self._leaving:
                cluster.enter(session, self.name)
        except BaseException:
            session.close()
            raise
        self._written = {}
        return session

    def _ask(self, session: PostgresSession) -> Cluster:
        services = {network.name: network.service for network in self.networks.values()}
        if services != self._written:
            cluster.describe(session, self.name, self._host, services)
            self._written = services
        return cluster.look(session, end_silent=True)

    async def _look(self) -> None:
        """Query the cluster's state. Raises `UserError` if this cannot be a node."""
        try:
            self.cluster, self._outage = await self._link.run(self._ask), ""
        except (StoreUnavailable, psycopg.Error) as error:
            self._note_outage(error)

    def _note_outage(self, why: Exception) -> None:
        """Change nothing while the cluster's state is unknown."""
        self.cluster = None
        # Let others keep their networks when the server is back.
        self._patient_until = asyncio.get_running_loop().time() + cluster.LEASE_S
        if not self._outage:
            self._outage = str(why)
            self._report(StandingBy(self._outage))

    async def _until(self, done: Callable[[], bool]) -> None:
        """Follow the cluster's state."""
        while not done():
            try:
                await self._look()
            except UserError as error:  # its previous session has not ended yet
                self._note_outage(error)
            if self.cluster is not None:
                self._follow(self.cluster)
            self._look_again.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await self._look_again.wait()

    # Taking and giving networks ---------------------------------------------------------------

    def _follow(self, state: Cluster) -> None:
        self._given = {name for name in self._given if self._is_on_its_way(name, state)}
        for network in self.networks.values():
            owner = state.owners.get(network.database)
            chosen = state.placed(network.name)
            if chosen is None:
                continue
            if network.task is None and chosen == self.name and owner is None:
                self._take(network, state)
            elif network.task is not None and chosen != self.name and state.nodes[chosen].settled:
                self._give(network, f"it moves to {chosen}")

    def _is_on_its_way(self, name: str, state: Cluster) -> bool:
        owner = state.owner_of(name)
        return owner is None or owner.node == self.name

    def _take(self, network: _HostedNetwork, state: Cluster) -> None:
        self._given.discard(network.name)
        starting = sum(each.task is not None and not each.url for each in self.networks.values())
        not_before = max(network.not_before, self._patient_until)
        if not state.nodes[self.name].settled or starting >= MOST_MOVING:
            return
        if asyncio.get_running_loop().time() >= not_before:
            network.stop = asyncio.Event()
            network.task = self._tasks.create_task(self._serve(network, network.stop))

    def _give(self, network: _HostedNetwork, reason: str) -> None:
        """Give a network away, with an orderly shutdown if it serves."""
        assert network.stop is not None
        assert network.task is not None
        if network.stop.is_set():
            return
        if not network.url:
            network.stop.set()
            network.task.cancel()
        elif len(self._given) < MOST_MOVING:
            self._given.add(network.name)
            network.stop.set()
            self._report(NetworkLeft(network.name, reason))

    async def _serve(self, network: _HostedNetwork, stop: asyncio.Event) -> None:
        again_s = AGAIN_S
        try:
            await serve(
                network.config,
                partial(self._on_event, network),
                stop=stop,
                with_agents=self._with_agents,
                standby=True,
                place=network.place,
            )
            again_s = 0.0
        except* HubbubError as errors:
            error = first_error(errors)
            self._report(NetworkLeft(network.name, str(error)))
            if isinstance(error, UserError) and not network.url:
                network.problem = str(error)
        except* Exception as errors:  # one network must not take the others down
            log.exception("network failed", network=network.name)
            network.problem = f"it failed: {first_error(errors)!r}"
        finally:
            self._left += bool(network.url)
            network.task, network.url, network.place.metrics = None, "", None
            network.not_before = asyncio.get_running_loop().time() + again_s
            self._look_again.set()

    def _on_event(self, network: _HostedNetwork, event: LifecycleEvent) -> None:
        match event:
            case NetworkUp(url=url):
                network.url, network.problem = url, ""
                self._taken += 1
                self._report(NetworkTaken(network.name, url))
                self._look_again.set()
            case AgentStarted() | AgentDied() | AgentGivenUp() | AgentStuck() | AgentOutput():
                names = tuple(f"{network.name}/{agent}" for agent in event.agents)
                self._report(replace(event, agents=names))
            case Stopping(reason):  # another hub took it over
                self._report(NetworkLeft(network.name, reason))

    # Metrics ----------------------------------------------------------------------------------

    def rendered(self) -> bytes:
        """The metrics of the node and of its hubs, in Prometheus's format."""
        places = (each.place.metrics for each in self.networks.values())
        figures = Figures(self.name, self._figures)
        return render(*(each for each in places if each is not None), others=[figures])

    def _figures(self) -> Mapping[tuple[str, str], float]:
        state = self.cluster or Cluster({}, {}, {}, ())
        able = [
            sum(node.live and name in node.networks for node in state.nodes.values())
            for name in self.networks
        ]
        without_owner = sum(state.owner_of(name) is None for name in self.networks)
        return {
            ("node_networks", "Networks that run here"): len(state.owned_by(self.name)),
            ("node_taken_total", "Networks taken so far"): self._taken,
            ("node_left_total", "Networks given away so far"): self._left,
            ("node_postgres_up", "Whether the cluster's database answers"): bool(state.nodes),
            ("cluster_nodes", "Live nodes, as seen here"): sum(
                node.live for node in state.nodes.values()
            ),
            ("cluster_networks_without_owner", "This node's networks without an owner"): (
                without_owner
            ),
            ("cluster_networks_without_standby", "This node's networks with at most one node"): sum(
                count < 2 for count in able
            ),
        }

    # Shutdown ---------------------------------------------------------------------------------

    async def _leave(self) -> None:
        """Give all networks away and wait for other nodes to take them; then stop the rest."""
        self._leaving = True
        with suppress(TimeoutError, StoreUnavailable, psycopg.Error):
            async with asyncio.timeout(LEAVE_WITHIN_S):
                await self._link.run(cluster.leave, self.name)
                await self._until(self._is_free)
        running = [each for each in self.networks.values() if each.task is not None]
        for network in running:
            assert network.stop is not None
            assert network.task is not None
            network.stop.set()
            if not network.url:
                network.task.cancel()
        await asyncio.gather(*(each.task for each in running if each.task), return_exceptions=True)
        with suppress(TimeoutError, StoreUnavailable, psycopg.Error):
            async with asyncio.timeout(cluster.LEASE_S):
                await self._link.run(cluster.forget, self.name)

    def _is_free(self) -> bool:
        """Whether no other node can take a network that still runs here."""
        running = [each for each in self.networks.values() if each.task is not None]
        state = self.cluster
        return state is None or all(state.placed(network.name) is None for network in running)


_SERVER = ("host", "hostaddr", "port", "user")
"""The parts of a URL that identify the server and the role. The role matters because Postgres
shows the activity of sessions only to their own role."""


def load_networks(
    paths: Sequence[Path], cluster: str, host: str = ""
) -> Mapping[str, LoadedConfig]:
    """The networks of these files, or of all YAML files in these folders, by database. They listen
    on `host` if given, at their own ports.

    Raises `UserError` for a network that cannot run in the `cluster`, or conflicts with another.
    """
    loaded = dict[str, LoadedConfig]()
    server = _database(cluster, "the cluster")
    for path in _files(paths):
        config = load_valid(path)
        check_models(config)
        check_programs(config)
        store, where = config.file.network.store, shown_path(path)
        if not store.startswith(POSTGRES):
            raise UserError(
                f"{where}: a node needs networks with a store in Postgres, but this one's is "
                f"{store}: move it with `hubbub network migrate`"
            )
        database = _database(store, where)
        if [database.get(key) for key in _SERVER] != [server.get(key) for key in _SERVER]:
            raise UserError(
                f"{where}: its store, {shown_store(store)}, is not on the cluster's server: use "
                "the same host, port and user as in --cluster"
            )
        name = database.get("dbname") or database.get("user") or ""
        for other in loaded.values():
            _check_beside(config, other, same_store=loaded.get(name) is other)
        loaded[name] = _listening(config, host) if host else config
    return loaded


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if not path.is_dir():
            yield path
        elif files := sorted((*path.glob("*.yaml"), *path.glob("*.yml"))):
            yield from files
        else:
            raise UserError(f"there is no YAML file in {shown_path(path)}")


def _database(url: str, where: str) -> Mapping[str, str]:
    try:
        check_postgres_url(url)
        return {key: str(value) for key, value in conninfo_to_dict(url).items()}
    except (ValueError, ProgrammingError) as error:
        name = without_password(shown_store(url))
        raise UserError(f"{where}: {name} is not a Postgres URL: {error}") from error


def _check_beside(config: LoadedConfig, other: LoadedConfig, *, same_store: bool) -> None:
    same: dict[str, Callable[[LoadedConfig], object]] = {
        "name": lambda each: each.file.network.name,
        "port": lambda each: each.address.port,
    }
    what = next((key for key, of in same.items() if of(config) == of(other)), None)
    if what is not None or same_store:
        raise UserError(
            f"{shown_path(config.path)} and {shown_path(other.path)} have the same "
            f"{what or 'store'}: each network of a node needs its own"
        )


def _listening(config: LoadedConfig, host: str) -> LoadedConfig:
    listen = str(ListenAddress(host, config.address.port))
    network = config.file.network.model_copy(update={"listen": listen})
    return replace(config, file=config.file.model_copy(update={"network": network}))
