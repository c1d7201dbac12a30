"""A node: one process that owns its share of many networks, whose stores are in one Postgres.

    what Postgres shows -> where each network is placed -> take those that nobody has, give away
    those that are placed elsewhere

A network is run as `hubbub up --standby` runs it, among others.
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
from hubbub.config.paths import POSTGRES, shown_store
from hubbub.config.problems import shown_path
from hubbub.config.units import ListenAddress
from hubbub.errors import HubbubError, StoreUnavailable, UserError
from hubbub.logs import get_logger
from hubbub.network.cluster.placement import Cluster, NodeNetwork
from hubbub.network.exposition import render
from hubbub.network.store.postgres import cluster
from hubbub.network.store.postgres.link import Link
from hubbub.network.store.postgres.session import PostgresSession

__all__ = ["Node", "load_networks"]

log = get_logger(__name__)

LOOK_S = 0.5
"""Seconds after which Postgres is asked again who is there."""
MOST_MOVING = 4
"""Networks that are given away at a time, and that are started: others go on meanwhile."""
AGAIN_S = 5.0
"""Seconds before a network that could not be started is tried again."""
LEAVE_WITHIN_S = 30.0
"""Seconds in which a node that stops waits for others to take its networks."""


@dataclass
class _HostedNetwork:
    """A network at this node, whether it runs here or not."""

    config: LoadedConfig
    database: str
    place: NodePlace
    task: asyncio.Task[None] | None = None
    stop: asyncio.Event | None = None
    url: str = ""
    """Where it listens, while it does."""
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
    """`run` it until it is told to stop."""

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
        """`url` names the cluster's database, `networks` are those of the node by their own
        databases, `host` is where they listen."""
        self.name, self._url, self._host = name, url, host
        self._report, self._with_agents = report, with_agents
        made = (
            _HostedNetwork(config, database, NodePlace(name))
            for database, config in networks.items()
        )
        self.networks = {network.name: network for network in made}
        self._link = Link(self._connect)
        self._written: Mapping[str, NodeNetwork] = {}
        self._leaving, self._said = False, ""
        self._given: set[str] = set()
        self._look_again = asyncio.Event()
        self._patient_until = 0.0
        self._taken = self._left = 0
        self.cluster: Cluster | None = None
        """As it was seen the last time; None: Postgres does not answer."""

    async def run(self, *, metrics: str = "", signals: bool = False) -> None:
        """Own what is placed here until it is cancelled, or until a signal, after which others get
        it. What it counts is told on `metrics` (host:port).

        Raises UserError for a cluster's database that cannot be used, or has another node of this
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

    # What there is ----------------------------------------------------------------------------

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
        """Raises `UserError` when it cannot be a node."""
        try:
            self.cluster, self._said = await self._link.run(self._ask), ""
        except (StoreUnavailable, psycopg.Error) as error:
            self._blind(error)

    def _blind(self, why: Exception) -> None:
        """It does not see the cluster, and changes nothing."""
        self.cluster = None
        # What others own should be theirs again when the server is back.
        self._patient_until = asyncio.get_running_loop().time() + cluster.LEASE_S
        if not self._said:
            self._said = str(why)
            self._report(StandingBy(self._said))

    async def _until(self, done: Callable[[], bool]) -> None:
        """Follow what Postgres shows."""
        while not done():
            try:
                await self._look()
            except UserError as error:  # its session before has not ended yet
                self._blind(error)
            if self.cluster is not None:
                self._follow(self.cluster)
            self._look_again.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await self._look_again.wait()

    # What comes of it -------------------------------------------------------------------------

    def _follow(self, seen: Cluster) -> None:
        self._given = {name for name in self._given if self._is_on_its_way(name, seen)}
        for network in self.networks.values():
            owner = seen.owners.get(network.database)
            chosen = seen.placed(network.name)
            if chosen is None:
                continue
            if network.task is None and chosen == self.name and owner is None:
                self._take(network, seen)
            elif network.task is not None and chosen != self.name and seen.nodes[chosen].settled:
                self._give(network, f"{chosen} is to own it")

    def _is_on_its_way(self, name: str, seen: Cluster) -> bool:
        owner = seen.owner_of(name)
        return owner is None or owner.node == self.name

    def _take(self, network: _HostedNetwork, seen: Cluster) -> None:
        self._given.discard(network.name)
        starting = sum(each.task is not None and not each.url for each in self.networks.values())
        not_before = max(network.not_before, self._patient_until)
        if not seen.nodes[self.name].settled or starting >= MOST_MOVING:
            return
        if asyncio.get_running_loop().time() >= not_before:
            network.stop = asyncio.Event()
            network.task = self._tasks.create_task(self._serve(network, network.stop))

    def _give(self, network: _HostedNetwork, reason: str) -> None:
        """Let it go, in order if it serves."""
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
                partial(self._heard, network),
                stop=stop,
                with_agents=self._with_agents,
                standby=True,
                place=network.place,
            )
            again_s = 0.0
        except* HubbubError as errors:
            error = _first(errors)
            self._report(NetworkLeft(network.name, str(error)))
            if isinstance(error, UserError) and not network.url:
                network.problem = str(error)
        except* Exception as errors:  # one network must not take all others down with it
            log.exception("network failed", network=network.name)
            network.problem = f"it failed: {_first(errors)!r}"
        finally:
            self._left += bool(network.url)
            network.task, network.url, network.place.metrics = None, "", None
            network.not_before = asyncio.get_running_loop().time() + again_s
            self._look_again.set()

    def _heard(self, network: _HostedNetwork, event: LifecycleEvent) -> None:
        match event:
            case NetworkUp(url=url):
                network.url, network.problem = url, ""
                self._taken += 1
                self._report(NetworkTaken(network.name, url))
                self._look_again.set()
            case AgentStarted() | AgentDied() | AgentGivenUp() | AgentStuck() | AgentOutput():
                names = tuple(f"{network.name}/{agent}" for agent in event.agents)
                self._report(replace(event, agents=names))
            case Stopping(reason):  # another hub has it
                self._report(NetworkLeft(network.name, reason))

    # What it counts ---------------------------------------------------------------------------

    def rendered(self) -> bytes:
        """Its figures, and those of the hubs that run here, as Prometheus reads them."""
        places = (each.place.metrics for each in self.networks.values())
        figures = Figures(self.name, self._figures)
        return render(*(each for each in places if each is not None), others=[figures])

    def _figures(self) -> Mapping[tuple[str, str], float]:
        seen = self.cluster or Cluster({}, {}, {}, ())
        able = [
            sum(node.live and name in node.networks for node in seen.nodes.values())
            for name in self.networks
        ]
        nobody = sum(seen.owner_of(name) is None for name in self.networks)
        return {
            ("node_networks", "Networks that run here"): len(seen.owned_by(self.name)),
            ("node_taken_total", "Networks taken, each time anew"): self._taken,
            ("node_left_total", "Networks left, each time anew"): self._left,
            ("node_postgres_up", "Whether the cluster's database answers"): bool(seen.nodes),
            ("cluster_nodes", "Live nodes, as seen here"): sum(
                node.live for node in seen.nodes.values()
            ),
            ("cluster_networks_without_owner", "Of the networks here"): nobody,
            ("cluster_networks_without_standby", "With one live node, or none"): sum(
                count < 2 for count in able
            ),
        }

    # The end ----------------------------------------------------------------------------------

    async def _leave(self) -> None:
        """Give all away to the nodes that stay, and wait for them; then end what is left."""
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
        """Whether nobody waits for anything of this node."""
        running = [each for each in self.networks.values() if each.task is not None]
        seen = self.cluster
        return seen is None or all(seen.placed(network.name) is None for network in running)


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """What a task group wrapped."""
    found: BaseException = errors
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found


_SERVER = ("host", "hostaddr", "port", "user")
"""What of a URL says which server it is, and who asks there: only a role's own sessions show when
they were last heard."""


def load_networks(
    paths: Sequence[Path], cluster: str, host: str = ""
) -> Mapping[str, LoadedConfig]:
    """The networks of these files, or of all YAML in these folders, by the names of their
    databases. They listen on `host`, if one is given, at their own ports.

    Raises UserError for a network that cannot run in the `cluster`, or not beside another one.
    """
    found = dict[str, LoadedConfig]()
    server = _database(cluster, "the cluster")
    for path in _files(paths):
        config = load_valid(path)
        check_models(config)
        check_programs(config)
        store, where = config.file.network.store, shown_path(path)
        if not store.startswith(POSTGRES):
            raise UserError(
                f"{where}: a node runs networks whose store is in Postgres, and this one's is "
                f"{store}: move it with `hubbub network migrate`"
            )
        database = _database(store, where)
        if [database.get(key) for key in _SERVER] != [server.get(key) for key in _SERVER]:
            raise UserError(
                f"{where}: its store, {shown_store(store)}, is not on the cluster's server: name "
                "host, port and user as in --cluster"
            )
        name = database.get("dbname") or database.get("user") or ""
        for other in found.values():
            _check_beside(config, other, same_store=found.get(name) is other)
        found[name] = _listening(config, host) if host else config
    return found


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
        if not url.startswith(POSTGRES):
            raise ProgrammingError("it begins with postgresql://")
        return {key: str(value) for key, value in conninfo_to_dict(url).items()}
    except ProgrammingError as error:
        raise UserError(f"{where}: {shown_store(url)} is no URL of Postgres: {error}") from error


def _check_beside(config: LoadedConfig, other: LoadedConfig, *, same_store: bool) -> None:
    same: dict[str, Callable[[LoadedConfig], object]] = {
        "name": lambda each: each.file.network.name,
        "port": lambda each: each.address.port,
    }
    what = next((key for key, of in same.items() if of(config) == of(other)), None)
    if what is not None or same_store:
        raise UserError(
            f"{shown_path(config.path)} and {shown_path(other.path)} have the same "
            f"{what or 'store'}: a node needs another one for each network"
        )


def _listening(config: LoadedConfig, host: str) -> LoadedConfig:
    listen = str(ListenAddress(host, config.address.port))
    network = config.file.network.model_copy(update={"listen": listen})
    return replace(config, file=config.file.model_copy(update={"network": network}))
