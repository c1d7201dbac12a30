"""A whole network in one call: store, hub, server, run file, agents, and the end of it all."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from hubbub.app.commands import Commands
from hubbub.app.lifecycle import (
    AgentGivenUp,
    LifecycleEvent,
    MessageSeen,
    NetworkUp,
    Report,
    Stopping,
)
from hubbub.app.supervisor import Supervisor, Unit, unit, units
from hubbub.client.runfile import RunFile, remove_run_file, write_run_file
from hubbub.config.agent_files import agent_text, field_at, fields_of, file_of, path_of
from hubbub.config.loader import LoadedConfig, load
from hubbub.config.problems import ConfigProblems, shown_path
from hubbub.config.source import Document, parse
from hubbub.errors import ConfigError, UserError
from hubbub.logs import get_logger
from hubbub.mods.loader import load_mods
from hubbub.network.caller import OPERATOR
from hubbub.network.hub import Hub
from hubbub.network.log import Entry
from hubbub.network.path_switch import Doors
from hubbub.network.server import Listening, serve_hub
from hubbub.network.services.agent_editor import Checked
from hubbub.network.store import open_store
from hubbub.protocol.agents import AgentFields, AgentProblem
from hubbub.web.site import About, Site

__all__ = [
    "AgentFiles",
    "serve",
]


log = get_logger(__name__)


async def serve(
    config: LoadedConfig,
    report: Report,
    *,
    stop: asyncio.Event | None = None,
    with_agents: bool = True,
    signals: bool = False,
) -> None:
    """Run the network until `stop` is set, or until SIGINT, SIGTERM or SIGHUP if `signals`.

    Everything that was started has ended when this returns. Raises UserError for an address or
    database that cannot be used, before any agent is started.
    """
    stop = stop or asyncio.Event()
    mods = load_mods(config.file.mods, config.file.network.allow_mods)
    hub = Hub(config.file, open_store(config.file.network.store), mods=mods)
    site = _site(config)
    async with (
        hub,
        _doors(hub, config) as doors,
        serve_hub(hub, pages=site, doors=doors) as listening,
    ):
        tokens = _mint(hub, config)
        with _run_file(config, listening, tokens), _stopping(stop, report, signals):
            report(_up(config, listening))
            _watch(hub, report)
            async with _background(asyncio.to_thread(site.prepare)):
                life = secrets.token_hex(8)
                agents = units(config, listening.url, tokens, life) if with_agents else []
                supervisor = Supervisor(agents, _telling(hub, report), agents=_Agents(hub))
                hub.gateway.silent = supervisor.silent
                hub.services.launcher.launcher = supervisor
                commands = Commands(config.path, listening.url, tokens[OPERATOR])
                hub.services.branches.program = commands
                if with_agents:
                    hub.services.agent_editor.files = AgentFiles(
                        config,
                        supervisor,
                        lambda agent, token: unit(
                            config, listening.url, {agent: token}, life, (agent,)
                        ),
                    )
                async with _background(supervisor.run()):
                    await stop.wait()


@asynccontextmanager
async def _doors(hub: Hub, config: LoadedConfig) -> AsyncIterator[Doors]:
    """What else is spoken on the hub's port."""
    network = config.file.network
    if not (network.mcp or network.openai):
        yield {}
        return
    from hubbub.interop.doors import open_doors  # who has no door imports none

    async with open_doors(hub, config.address.host) as doors:
        yield doors


class _Agents:
    """What the supervisor asks about them."""

    def __init__(self, hub: Hub):
        self._turns, self._presence = hub.kernel.state.turns, hub.kernel.state.presence
        # As long as it took to find out: somebody else's work in its loop is no reason to end it.
        self.patience_s = hub.limits.heartbeat + hub.limits.heartbeat_reply

    def begins(self, agent: str) -> int:
        return self._turns.begins(agent)

    def present(self, agent: str) -> bool:
        return agent in self._presence


def _telling(hub: Hub, report: Report) -> Report:
    """The hub notifies who waits for an agent that is given up."""

    def on(event: LifecycleEvent) -> None:
        report(event)
        if isinstance(event, AgentGivenUp):
            how = f"exit code {event.code}" if event.code >= 0 else "killed by a signal"
            reason = f"does not run: its process ended {event.deaths} times in a row, {how}"
            hub.services.down.put(event.agents, reason)

    return on


def _mint(hub: Hub, config: LoadedConfig) -> dict[str, str]:
    """Tokens of this run for those it starts and those who sit at this machine.

    In an open network people need none, and still no person may take the place of its agents.
    """
    people = config.file.humans if config.file.network.auth == "tokens" else ()
    names = [OPERATOR, *config.file.agents, *config.file.bridges, *people]
    tokens = {name: "hub_" + secrets.token_urlsafe(32) for name in names}
    for name, token in tokens.items():
        hub.gateway.admission.add_token(name, token)
    return tokens


@contextmanager
def _run_file(config: LoadedConfig, listening: Listening, tokens: dict[str, str]) -> Iterator[None]:
    """While the context lasts, programs of the same user find the network by themselves."""
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


@contextmanager
def _stopping(stop: asyncio.Event, report: Report, signals: bool) -> Iterator[None]:
    """Signals set `stop`; a second one ends the process at once (agents end with it)."""
    loop = asyncio.get_running_loop()

    def on_signal(number: signal.Signals) -> None:
        if stop.is_set():
            os._exit(128 + number)
        stop.set()  # first: the report may fail, when the terminal has gone away
        report(Stopping(number.name))

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if signals else ()
    for number in numbers:
        loop.add_signal_handler(number, on_signal, number)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


@asynccontextmanager
async def _background(work: Coroutine[None, None, None]) -> AsyncIterator[None]:
    """Run `work` beside the body and cancel it at the end; its failure ends the body too."""
    async with asyncio.TaskGroup() as group:
        task = group.create_task(work)
        try:
            yield
        finally:
            task.cancel()


def _watch(hub: Hub, report: Report) -> None:
    """Report every message that goes into the log, from within the commit: next to nothing may be
    done about each of them there, and nothing that goes wrong may come through."""

    def seen(entries: Sequence[Entry]) -> None:
        try:
            for entry in entries:
                report(MessageSeen(entry.body, entry.draft.type == "direct"))
        except Exception:
            log.exception("a message cannot be shown")

    hub.hear(seen)


def _up(config: LoadedConfig, listening: Listening) -> NetworkUp:
    file = config.file
    return NetworkUp(
        network=file.network.name,
        url=listening.url,
        auth=file.network.auth,
        store=file.network.store,
        agents=tuple(file.agents),
        humans=tuple(file.humans),
        channels=tuple(file.channels),
    )


def _site(config: LoadedConfig) -> Site:
    network = config.file.network
    return Site(About(network.name, network.auth, tuple(config.file.humans)))


class AgentFiles:
    """The files of a network's agent folder, and the processes of their agents."""

    def __init__(
        self, config: LoadedConfig, supervisor: Supervisor, unit: Callable[[str, str], Unit]
    ):
        """`unit` is the process of an agent with a token."""
        self._config, self._supervisor, self._unit = config, supervisor, unit

    @property
    def _folder(self) -> Path:
        folder = path_of(self._config.document.data, self._config.path)
        assert folder is not None  # else the service does not ask
        return folder

    def file(self, agent: str) -> str:
        return shown_path(file_of(self._folder, agent))

    def fields(self, agent: str) -> AgentFields | None:
        """As its file says now; None: it has none. Raises `UserError`."""
        before = self._before(agent)
        return None if before is None else _fields(agent, before[1])

    def check(self, agent: str, fields: AgentFields | None) -> Checked:
        """What is wrong with an agent of these fields (None: with removing it), and its config:
        the whole network is read as it would be. Raises `UserError` for a file of another form."""
        before, path = self._before(agent), file_of(self._folder, agent)
        if fields is not None and before is not None:
            problems = [*self._with_variables(agent, fields, before)]
            if problems:
                return Checked(None, problems)
        text = None if fields is None else self._text(agent, fields, before)
        try:
            known = load(self._config.path, agents={path: text}).file.agents
        except ConfigProblems as error:
            return Checked(None, [_problem(agent, each) for each in error.problems])
        except ConfigError as error:
            return Checked(None, [_problem(agent, error)])
        if text is not None and fields is not None and self._read(agent, text) != fields:
            return Checked(None, [AgentProblem(field="", message="it cannot be written as YAML")])
        return Checked(known.get(agent), [])

    def write(self, agent: str, fields: AgentFields | None) -> Callable[[], None]:
        """Put its file in place, whole or not at all, or take it away; returns what puts back the
        one before. Raises `OSError`."""
        before, path = self._before(agent), file_of(self._folder, agent)
        if fields is None:
            path.unlink()
        else:
            _put(path, self._text(agent, fields, before))

        def undo() -> None:
            if before is None:
                path.unlink(missing_ok=True)
            else:
                _put(path, before[0])

        return undo

    def start(self, agent: str, token: str) -> None:
        self._supervisor.add(self._unit(agent, token))

    async def remove(self, agent: str) -> None:
        await self._supervisor.remove(agent)

    def _before(self, agent: str) -> tuple[str, Document] | None:
        path = file_of(self._folder, agent)
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"{shown_path(path)} cannot be read: {error}") from None
        document = parse(path, _AS_WRITTEN, text)
        _fields(agent, document)
        return text, document

    def _text(self, agent: str, fields: AgentFields, before: tuple[str, Document] | None) -> str:
        """Raises `UserError` for a file that holds what `agent_text` cannot change."""
        try:
            return agent_text(agent, fields, before)
        except (ValueError, LookupError, TypeError) as error:
            raise _by_hand(self.file(agent), error) from None

    def _read(self, agent: str, text: str) -> AgentFields:
        return _fields(agent, parse(file_of(self._folder, agent), _AS_WRITTEN, text))

    def _with_variables(
        self, agent: str, fields: AgentFields, before: tuple[str, Document]
    ) -> Iterator[AgentProblem]:
        """Fields that would change, and have variables of the environment: what is written here is
        text, and would end that."""
        old = _fields(agent, before[1])
        real = _fields(agent, parse(file_of(self._folder, agent), os.environ, before[0]))
        for name in AgentFields.model_fields:
            was = getattr(old, name)
            if was not in (getattr(fields, name), getattr(real, name)):
                text = f"it has a variable of the environment: change it in {self.file(agent)}"
                yield AgentProblem(field=name, message=text)


class _AsWritten(dict[str, str]):
    """An environment in which each variable stands for itself: what is shown to people has names
    in place of what may be secret."""

    def get(self, name: str, default: object = None) -> str:
        return f"${{{name}}}"


_AS_WRITTEN = _AsWritten()


def _fields(agent: str, document: Document) -> AgentFields:
    """Raises `UserError` where the file has not the form of such a file."""
    agents = document.data.get("agents")
    section = agents.get(agent) if isinstance(agents, Mapping) else None
    name = shown_path(document.place(()).file)
    if not isinstance(section, Mapping):
        raise UserError(f"{name} does not have the agent {agent!r}: it was changed by hand")
    try:
        return fields_of(section)
    except ValueError as error:
        raise _by_hand(name, error) from None


def _by_hand(file: str, error: Exception) -> UserError:
    return UserError(f"{file} was changed by hand and cannot be changed here: {error}")


def _problem(agent: str, error: ConfigError) -> AgentProblem:
    mine = error.loc[:2] == ("agents", agent)
    text = error.message.replace(f"agents.{agent}.", "").replace(f"agents.{agent} ", "it ")
    message = text if mine else str(error)
    field = "" if not mine else field_at(error.loc[2:]) if error.loc[2:] else "agent"
    return AgentProblem(field=field, message=message)


def _put(path: Path, text: str) -> None:
    """The file is there with this text, durably, or stays as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".tmp")
    try:
        with open(draft, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
