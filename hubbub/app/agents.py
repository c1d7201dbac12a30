"""The agent process of `hubbub agents run`, from a config or a single file."""

from __future__ import annotations

import asyncio
import json
import os
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from hubbub.agents.launch import load_agent_class, run_agent
from hubbub.agents.python.agent import Agent
from hubbub.app.import_check import unknown_handler
from hubbub.app.lifeline import RUN, TOKENS, URL, agent_tokens, end_with_parent
from hubbub.app.process import run_loop
from hubbub.app.running import until_signal
from hubbub.client import Client, ClientOptions, WebSocketTransport
from hubbub.client.runfile import Address, find_network
from hubbub.config.loader import LoadedConfig, load
from hubbub.config.models import AgentConfig, McpServerConfig, ModelConfig
from hubbub.config.problems import nearest, shown_path
from hubbub.errors import ConfigError, ConnectionLost, HubbubError, UserError
from hubbub.loading import line_in, load_module
from hubbub.protocol.codes import CloseCode
from hubbub.protocol.thread_ids import ID_RULE, is_participant_id
from hubbub.user_code import describe_error
from hubbub.wording import dashed

if TYPE_CHECKING:
    from hubbub.agents.program import PythonObjects
    from hubbub.agents.prompt.context import Note

__all__ = ["AgentJob", "AgentsJob", "from_config", "from_file", "lost", "run", "run_job"]

_ABNORMAL = 1006
_WITHOUT_PROMPT = ("python", "program")


@dataclass(frozen=True)
class AgentJob:
    """One agent to run."""

    name: str
    config: AgentConfig
    token: str | None
    objects: PythonObjects | None = None


@dataclass(frozen=True)
class AgentsJob:
    """The agents to run in this process, and the network they join."""

    url: str
    agents: tuple[AgentJob, ...]
    models: Mapping[str, ModelConfig]
    folder: Path
    run: str | None = None
    """The id of a run of the network: an agent greets once per run, even if it is restarted."""
    mods: tuple[Note, ...] = ()
    """The network's mods, for prompts."""
    mcp_servers: Mapping[str, McpServerConfig] = field(default_factory=dict)


def from_config(
    path: Path,
    names: Sequence[str],
    address: str | None,
    token: str | None,
    environ: Mapping[str, str],
) -> AgentsJob:
    """Agents of a network's YAML file; all of them if no names are given. Raises `UserError`.

    The launcher passes the network's address and the agents' tokens in the environment. Otherwise
    the network is at `address`, or else at the config's address.
    """
    config = load(path, environ=environ)
    agents = config.file.agents
    for name in names:
        if name not in agents:
            text = f"there is no agent '{name}'{nearest(name, agents)}"
            raise ConfigError(text, shown_path(config.path))
    place = _place(environ.get(URL), address or str(config.address))
    tokens = {**place.tokens, **agent_tokens(environ)}
    models, folder = config.file.models, config.path.parent
    jobs: list[AgentJob] = []
    for name in names or agents:
        agent, objects = config.file.agent(name), None
        if agent.object is not None:
            from hubbub.agents.llm_agent import resolve_agent  # imports agents with models

            whole = resolve_agent(agent, name, folder, models)
            agent, objects, models = whole.config, whole.objects, {**models, **whole.models}
        jobs.append(AgentJob(name, agent, tokens.get(name, token), objects))
    mods = _notes(config) if any(job.config.kind not in _WITHOUT_PROMPT for job in jobs) else ()
    servers = config.file.mcp_servers
    return AgentsJob(place.url, tuple(jobs), models, folder, environ.get(RUN), mods, servers)


def _notes(config: LoadedConfig) -> tuple[Note, ...]:
    from hubbub.app.prompts import mod_notes  # imports everything about prompts

    return mod_notes(config.file.mods)


def from_file(
    file: Path, class_: str | None, names: Sequence[str], address: str | None, token: str | None
) -> AgentsJob:
    """The agent class in a Python file, as one agent. Raises `UserError`."""
    file = file.absolute()
    if len(names) > 1:
        raise UserError("an agent from a file has one name: use --name once")
    chosen = class_ or _only_class(file)
    name = names[0] if names else dashed(chosen)
    if not is_participant_id(name):
        raise UserError(f"'{name}' is not a valid name: use {ID_RULE}")
    config = AgentConfig(kind="python", class_=f"{file}:{chosen}")
    if problem := unknown_handler(load_agent_class(config, file.parent)):
        raise ConfigError(f"{chosen} {problem}", shown_path(file))
    place = find_network(address)
    job = AgentJob(name, config, token or place.tokens.get(name))
    return AgentsJob(place.url, (job,), {}, file.parent)


def _place(url: str | None, address: str) -> Address:
    return Address(url) if url else find_network(address)


def _only_class(file: Path) -> str:
    """The name of the only agent class in a file. Raises `ConfigError`."""
    module = load_module(file)
    names = [
        name
        for name, value in vars(module).items()
        if isinstance(value, type)
        and issubclass(value, Agent)
        and value.__module__ == module.__name__
    ]
    if len(names) == 1:
        return names[0]
    where = shown_path(file)
    if not names:
        raise ConfigError("defines no subclass of hubbub.Agent", where)
    raise ConfigError(f"defines several agents; choose one with --class: {', '.join(names)}", where)


def run(job: AgentsJob) -> None:
    """Run the agents until SIGINT or SIGTERM. Raises `HubbubError` if the network is lost."""
    for agent in job.agents:
        if agent.config.kind == "program":
            if len(job.agents) > 1:
                raise UserError(f"'{agent.name}' is a program: run it alone, with --name")
            _become(job, agent)
    run_loop(until_signal(run_job(job)))


def _become(job: AgentsJob, agent: AgentJob) -> NoReturn:
    """Replace this process by the agent's program, which joins by itself."""
    command = agent.config.command
    tokens = {} if agent.token is None else {agent.name: agent.token}
    environment = {**os.environ, URL: job.url, TOKENS: json.dumps(tokens)}
    os.chdir(job.folder)
    end_with_parent()
    try:
        os.execvpe(command[0], command, environment)
    except OSError as error:
        raise HubbubError(f"{agent.name}: cannot run {command[0]}: {error.strerror}") from error


async def run_job(job: AgentsJob) -> None:
    """Run the agents until cancelled, or until one of them fails."""
    async with asyncio.TaskGroup() as group:
        for agent in job.agents:
            group.create_task(_run(job, agent), name=agent.name)


def lost(name: str, url: str, error: ConnectionLost) -> HubbubError:
    """The error of a participant that cannot connect, or not any more."""
    if error.code == _ABNORMAL:
        return HubbubError(
            f"no network answers at {url} ({error.reason or 'connection lost'}); start one with "
            "`hubbub up`"
        )
    return HubbubError(f"{name}: the hub closed the connection: {error.reason}")


async def _run(job: AgentsJob, agent: AgentJob) -> None:
    """One agent, until cancelled. `hubbub up` makes new tokens when it starts, for this machine."""
    while True:
        try:
            return await _serve(job, agent)
        except ConnectionLost as error:
            token = find_network(job.url).tokens.get(agent.name)
            if error.code != CloseCode.AUTH or token in (None, agent.token):
                raise lost(agent.name, job.url, error) from error
            agent = replace(agent, token=token)


async def _serve(job: AgentsJob, agent: AgentJob) -> None:
    config = agent.config
    client = Client(
        WebSocketTransport(job.url),
        agent.name,
        "agent",
        token=agent.token,
        turns=True,
        options=ClientOptions(card=config.card),
    )
    try:
        async with client:
            cid = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{job.run}/{agent.name}/greet"))
            greet = cid if job.run is not None else None
            given, servers = (config, agent.name, client, job.folder), job.mcp_servers
            if config.kind == "acp":
                from hubbub.interop.acp.agent import run_acp_agent  # an extra

                await run_acp_agent(*given, greet_cid=greet, mods=job.mods, mcp_servers=servers)
            elif config.kind == "a2a":
                from hubbub.interop.a2a.remote import run_a2a_agent  # an extra

                await run_a2a_agent(*given, greet_cid=greet)
            else:
                await run_agent(
                    *given,
                    job.models,
                    greet_cid=greet,
                    mods=job.mods,
                    mcp_servers=servers,
                    objects=agent.objects,
                )
    except HubbubError:
        raise
    except Exception as error:  # on_start can raise anything
        file = job.folder / (config.class_ or "").rpartition(":")[0]
        if (line := line_in(error, file)) is None:
            raise
        where = f"{shown_path(file)}:{line}"
        raise HubbubError(f"{agent.name}: {where} raises {describe_error(error)}") from error
