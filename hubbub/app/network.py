"""Runs a whole network in one call: store, hub, server, run file, agents, and shutdown."""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from hubbub.app.agent_folder import DiskAgentFiles
from hubbub.app.fork_server import ForkServer, available
from hubbub.app.lifecycle import (
    AgentGivenUp,
    LifecycleEvent,
    MessageSeen,
    MessagesSeen,
    NetworkUp,
    Report,
    StandingBy,
    Stopping,
)
from hubbub.app.preflight import unpriced
from hubbub.app.running import background, stopping
from hubbub.app.supervisor import Supervisor
from hubbub.app.units import modules, unit, units
from hubbub.client.runfile import RunFile, remove_run_file, write_run_file
from hubbub.config.loader import LoadedConfig
from hubbub.config.paths import without_password
from hubbub.errors import OperationError, UserError
from hubbub.loading import missing_extra
from hubbub.logs import get_logger
from hubbub.mods.loader import load_mods
from hubbub.network.caller import OPERATOR
from hubbub.network.hub import Hub
from hubbub.network.log import Entry
from hubbub.network.metrics import HubMetrics
from hubbub.network.path_switch import Door, Doors
from hubbub.network.server import Listening, serve_hub
from hubbub.network.store import open_store
from hubbub.protocol.agents import Branch, Branched
from hubbub.protocol.codes import ErrorCode
from hubbub.web.site import About, Site

__all__ = ["Commands", "NodePlace", "serve"]


# Commands that a running network runs in processes of their own.


WITHIN_S = 660.0
"""Seconds: a branch has its own, shorter limit."""


class Commands:
    """Runs this program against the hub at `url`, as the operator."""

    def __init__(self, config: Path, url: str, token: str):
        self._config = config
        self._environment = {**os.environ, "HUBBUB_ADDRESS": url, "HUBBUB_TOKEN": token}
        self._environment.pop("HUBBUB_AS", None)

    async def branch(self, args: Branch) -> Branched:
        options = [
            f"--with={each.agent}.{key}={value}"
            for each in args.changes
            for key, value in (("instruction", each.instruction), ("model", each.model))
            if value is not None
        ]
        options += [f"--result={each.tool}={each.text}" for each in args.results]
        command = ["branch", "--json", "--config", str(self._config), *options, "--", args.message]
        return Branched.model_validate_json(await self._run(*command))

    async def case(self, message: str) -> str:
        return await self._run("record", "--case", "-", "--", message)

    async def _run(self, *command: str) -> str:
        """The command's output. Raises `OperationError` with its error message if there is none."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "hubbub", *command,
            stdin=DEVNULL, stdout=PIPE, stderr=PIPE, env=self._environment,
        )  # fmt: skip
        try:
            async with asyncio.timeout(WITHIN_S):
                out, problems = await process.communicate()
        except TimeoutError:
            text = f"took longer than {WITHIN_S:g} s"
            raise OperationError(ErrorCode.NOT_TRIED, text) from None
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        if not out:
            message = problems.decode(errors="replace").strip().removeprefix("hubbub: ")
            raise OperationError(ErrorCode.NOT_TRIED, message or f"exit code {process.returncode}")
        return out.decode()


log = get_logger(__name__)


@dataclass
class NodePlace:
    """A network's place at a node that runs several."""

    node: str
    metrics: HubMetrics | None = None
    """The hub's metrics, while it runs."""


async def serve(
    config: LoadedConfig,
    report: Report,
    *,
    stop: asyncio.Event | None = None,
    with_agents: bool = True,
    standby: bool = False,
    signals: bool = False,
    place: NodePlace | None = None,
) -> None:
    """Run the network until `stop` is set, or until SIGINT, SIGTERM or SIGHUP if `signals`.

    With `standby`, waits until no other hub runs the network. Everything it starts has ended when
    it returns. With a `place`, messages are not reported. Raises `UserError` for an unusable
    address or database, before any agent starts, and if another hub takes over the network.
    """
    stop = stop or asyncio.Event()
    lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def lose(why: str) -> None:
        lost.set_result(why)
        hub.gateway.leaving()  # before it refuses calls that gateways can send to the next owner

    mods = load_mods(config.file.mods, config.file.network.allow_mods)
    store = open_store(
        config.file.network.store,
        waiting=(lambda reason: report(StandingBy(reason))) if standby else None,
        lost=lose,
        node=place.node if place else "",
    )
    hub = Hub(config.file, store, mods=mods)
    site = _site(config)
    async with (
        hub,
        _forks(config, with_agents) as forks,
        _traced(hub, place),
        _doors(hub, config) as doors,
        serve_hub(hub, pages=site, doors=doors) as listening,
    ):
        tokens = _mint(hub, config)
        with _run_file(config, listening, tokens), stopping(stop, report, signals):
            report(_up(config, listening))
            if (warning := unpriced(config)) is not None:
                log.warning(warning)
            if place is None:
                _watch(hub, report)
            else:
                place.metrics = hub.kernel.metrics
                place.metrics.labels = {"node": place.node, "network": config.file.network.name}
            async with background(asyncio.to_thread(site.prepare)):
                life = secrets.token_hex(8)
                agents = units(config, listening.url, tokens, life) if with_agents else []
                presence, notify = _Agents(hub), _notifying(hub, report)
                supervisor = Supervisor(agents, notify, agents=presence, forks=forks)
                hub.gateway.silent = supervisor.silent
                hub.services.launcher.launcher = supervisor
                commands = Commands(config.path, listening.url, tokens[OPERATOR])
                hub.services.trials.program = commands
                if with_agents:
                    hub.services.agent_editor.files = DiskAgentFiles(
                        config,
                        supervisor,
                        lambda agent, token: unit(
                            config, listening.url, {agent: token}, life, (agent,)
                        ),
                    )
                async with (
                    background(supervisor.run()),
                    background(_stop_when(lost, stop, report)),
                ):
                    await stop.wait()
    if lost.done():
        again = "restart it with `--standby` if another hub has taken over"
        raise UserError(lost.result() if place else f"{lost.result()}; {again}")  # a node does


@asynccontextmanager
async def _forks(config: LoadedConfig, with_agents: bool) -> AsyncIterator[ForkServer | None]:
    """Started as early as possible: it imports while the hub starts."""
    needed = modules(config) if with_agents and available() else ()
    if not needed:
        yield None
        return
    async with ForkServer(needed) as forks:
        yield forks


async def _stop_when(lost: asyncio.Future[str], stop: asyncio.Event, report: Report) -> None:
    why = await asyncio.shield(lost)  # it outlives this task
    stop.set()
    report(Stopping(why))


@asynccontextmanager
async def _doors(hub: Hub, config: LoadedConfig) -> AsyncIterator[Doors]:
    """The other protocols on the hub's port."""
    network = config.file.network
    doors: dict[str, Door] = {}
    async with AsyncExitStack() as stack:
        if network.mcp or network.openai or network.a2a:
            from hubbub.interop.doors import open_doors

            cards = {name: agent.card for name, agent in config.file.agents.items()}
            doors |= await stack.enter_async_context(open_doors(hub, config.address.host, cards))
        if network.gateway_token is not None:
            from hubbub.network.cluster.owner import GatewayDoor

            parts = (hub.kernel, hub.gateway, hub.services.registry)
            door = GatewayDoor(*parts, network.gateway_token)
            doors |= await stack.enter_async_context(door.open(hub.listen))
        yield doors


@asynccontextmanager
async def _traced(hub: Hub, place: NodePlace | None) -> AsyncIterator[None]:
    """Export traces of the hub inside this context, if the environment configures it. Raises
    `UserError`."""
    if not wants_traces(os.environ):
        yield
        return
    if (problem := missing_extra("otel")) is not None:
        log.warning("not exporting traces: %s", problem)
        yield
        return
    from hubbub.app.traces import traced  # an extra

    async with traced(hub, place.node if place else ""):
        yield


def wants_traces(environ: Mapping[str, str]) -> bool:
    """Whether the standard OpenTelemetry variables configure an exporter."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    if exporter := environ.get("OTEL_TRACES_EXPORTER", "").strip():
        return exporter != "none"
    return any(environ.get(f"OTEL_EXPORTER_OTLP_{each}ENDPOINT") for each in ("", "TRACES_"))


class _Agents:
    """The supervisor's view of agents at the hub."""

    def __init__(self, hub: Hub):
        self._turns, self._presence = hub.kernel.state.turns, hub.kernel.state.presence
        # As long as detection took: an agent whose loop is busy should not be killed.
        self.patience_s = hub.limits.heartbeat + hub.limits.heartbeat_reply

    def begins(self, agent: str) -> int:
        return self._turns.begins(agent)

    def present(self, agent: str) -> bool:
        return agent in self._presence


def _notifying(hub: Hub, report: Report) -> Report:
    """`report`, which also notifies participants that wait for an agent that is given up."""

    def on(event: LifecycleEvent) -> None:
        report(event)
        if isinstance(event, AgentGivenUp):
            how = f"exit code {event.code}" if event.code >= 0 else "killed by a signal"
            reason = f"is not running: its process ended {event.deaths} times in a row, {how}"
            hub.services.launcher.given_up(event.agents, reason)

    return on


def _mint(hub: Hub, config: LoadedConfig) -> dict[str, str]:
    """Tokens of this run for the processes it starts and for people on this machine.

    In an open network people need none, but no one may join as one of its agents.
    """
    people = config.file.humans if config.file.network.auth == "tokens" else ()
    names = [OPERATOR, *config.file.agents, *config.file.bridges, *people]
    tokens = {name: "hub_" + secrets.token_urlsafe(32) for name in names}
    for name, token in tokens.items():
        hub.gateway.admission.add_token(name, token)
    return tokens


@contextmanager
def _run_file(config: LoadedConfig, listening: Listening, tokens: dict[str, str]) -> Iterator[None]:
    """Publish the network to programs of the same user inside this context."""
    mine = RunFile(
        network=config.file.network.name,
        url=listening.url,
        pid=os.getpid(),
        auth=config.file.network.auth,
        tokens=tokens,
        humans=list(config.file.humans),
    )
    write_run_file(mine)
    try:
        yield
    finally:
        remove_run_file(mine)


def _watch(hub: Hub, report: Report) -> None:
    """Report messages as they are committed to the log. This runs inside the commit, so it must be
    fast and must not raise."""

    def report_messages(entries: Sequence[Entry]) -> None:
        try:
            messages = [MessageSeen(entry.body, entry.draft.type == "direct") for entry in entries]
            report(MessagesSeen(messages))
        except Exception:
            log.exception("cannot show messages")

    hub.listen(report_messages)


def _up(config: LoadedConfig, listening: Listening) -> NetworkUp:
    file = config.file
    return NetworkUp(
        network=file.network.name,
        url=listening.url,
        auth=file.network.auth,
        store=without_password(file.network.store),
        agents=tuple(file.agents),
        humans=tuple(file.humans),
        channels=tuple(file.channels),
    )


def _site(config: LoadedConfig) -> Site:
    network = config.file.network
    return Site(About(network.name, network.auth, tuple(config.file.humans)))
