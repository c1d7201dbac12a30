"""Checks before anything starts, so that a mistake leaves nothing half-started."""

from __future__ import annotations

import errno
import os
import shutil
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from hubbub.app.import_trial import ImportTrial, MadeTool
from hubbub.config.agents import AcpConfig
from hubbub.config.explain import dotted, explain
from hubbub.config.loader import LoadedConfig, load
from hubbub.config.models import AgentConfig
from hubbub.config.problems import ConfigProblems, shown_path
from hubbub.config.source import Loc
from hubbub.config.units import ListenAddress
from hubbub.errors import ConfigError, UserError
from hubbub.loading import missing_extra
from hubbub.mods.api import Mod, ModConfig
from hubbub.mods.loader import check_compatible, find_mod, known_mods

__all__ = [
    "check_models",
    "check_mods",
    "check_port",
    "check_programs",
    "load_checked",
    "load_valid",
    "programs_of",
    "unpriced",
    "without_key",
]


def load_valid(
    path: Path,
    overrides: Mapping[str, str] | None = None,
    meanwhile: Callable[[], None] = lambda: None,
) -> LoadedConfig:
    """The config at `path`, checked except for this machine's resources. `meanwhile` is called
    while another process imports the Python code of its agents.

    Raises `ConfigError` with all problems.
    """
    config = load(path, mods=known_mods().keys(), overrides=overrides)
    with ImportTrial(config) as trial:
        check_mods(config)
        meanwhile()
        functions = trial.end()
    problems = _agent_problems(config, functions)
    problems += [*_check_mcp(config), *_check_doors(config), *_check_bridges(config)]
    if problems:
        raise ConfigProblems(problems)
    return config


def load_checked(
    path: Path,
    overrides: Mapping[str, str] | None = None,
    meanwhile: Callable[[], None] = lambda: None,
) -> LoadedConfig:
    """The config at `path`, checked to run on this machine now; `meanwhile` as in `load_valid`.
    Raises `UserError`."""
    config = load_valid(path, overrides, meanwhile)
    check_models(config)
    check_programs(config)
    check_port(config.address)
    return config


def check_port(address: ListenAddress) -> None:
    """Raise `UserError` if the address cannot be listened on."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        socket.create_server((address.host, address.port), family=family).close()
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise UserError(
                f"the address {address} is in use, perhaps by another network (see `hubbub network "
                "status`): stop it, or choose another address with `listen` in the config, or for "
                f"one run with `hubbub up --listen {address.host}:{address.port + 1}`"
            ) from None
        why = error.strerror or str(error)
        raise UserError(
            f"cannot listen on {address}: {why}; choose another with --listen"
        ) from None


def check_mods(config: LoadedConfig) -> None:
    """Check that the mods can be imported, are compatible, and have valid settings. Raises
    `ConfigProblems`."""
    problems: list[ConfigError] = []
    before: list[type[Mod]] = []
    for n, entry in enumerate(config.file.mods):
        name, settings = (entry, None) if isinstance(entry, str) else next(iter(entry.items()))
        try:
            kind = find_mod(name, config.file.network.allow_mods).kind
            check_compatible(kind, before)
        except UserError as error:
            problems.append(config.problem(("mods", n), str(error)))
            continue
        before.append(kind)
        problems += _mod_problems(config, ("mods", n, name), kind, settings or {})
    if problems:
        raise ConfigProblems(problems)


def _mod_problems(
    config: LoadedConfig, loc: Loc, kind: type[Mod], settings: object
) -> list[ConfigError]:
    model: type[ModConfig] = kind.Config
    try:
        model.model_validate(settings)
    except ValidationError as error:
        return explain(error, model, config.document, at=loc)
    return []


def _agent_problems(config: LoadedConfig, functions: Mapping[str, MadeTool]) -> list[ConfigError]:
    file, folder = config.file, config.file.network.agent_folder
    chooses = folder is not None and folder.tools
    if not file.models and not chooses and all(map(_is_plain, file.agents.values())):
        return []
    from hubbub.app.agent_checks import agent_problems  # imports what agents with models need

    return agent_problems(config, functions)


def _is_plain(agent: AgentConfig) -> bool:
    """Whether an agent is only a class or a program, without prompt, model and tools."""
    own = (agent.tools, agent.disabled_tools, agent.tool_settings, agent.begin_with)
    return agent.kind in ("python", "program") and not (any(own) or agent.used_models)


def _check_mcp(config: LoadedConfig) -> Iterator[ConfigError]:
    """Report a missing extra for MCP servers, once."""
    agents = config.file.agents.items()
    using = (name for name, agent in agents if agent.mcp and agent.kind != "python")
    name, problem = next(using, None), missing_extra("mcp")
    if name is not None and problem is not None:
        yield config.problem(("agents", name, "mcp"), f"agents.{name}.mcp: {problem}")


def check_models(config: LoadedConfig) -> None:
    """Check that no agent's model lacks its API key. Raises `UserError`."""
    used = {model for agent in config.file.agents.values() for model in agent.used_models}
    without = sorted(name for name in used if config.file.models[name].lacks_key)
    if not without:
        return
    place = shown_path(config.path)
    raise UserError(
        f"{place} needs a model: {without_key(without[0])}; `hubbub init` in an empty folder "
        "creates a network that works without one"
    )


def unpriced(config: LoadedConfig) -> str | None:
    """The models without a price that agents with a limit in US dollars use, as a warning."""
    file, daily = config.file, config.file.network.daily
    shared = (file.network.budgets, daily.network, daily.thread, daily.agent)
    all_limited = any(limits.usd is not None for limits in shared)
    agents = file.agents.values()
    limited = (agent for agent in agents if all_limited or (agent.daily and agent.daily.usd))
    used = sorted({model for agent in limited for model in agent.used_models})
    names = [f"models.{name}" for name in used if file.models[name].price is None]
    if not names:
        return None
    have = "has" if len(names) == 1 else "have"
    return f"the limits in usd do not count {', '.join(names)}, which {have} no price"


def programs_of(config: LoadedConfig) -> Sequence[tuple[str, AcpConfig]]:
    """The coding agents with their programs."""
    agents = config.file.agents.items()
    return [(name, agent.acp) for name, agent in agents if agent.kind == "acp" and agent.acp]


def _check_doors(config: LoadedConfig) -> Iterator[ConfigError]:
    """Report missing extras for other protocols, each once."""
    for name, _ in programs_of(config)[:1]:
        if (problem := missing_extra("acp")) is not None:
            yield config.problem(("agents", name, "kind"), f"agents.{name}: {problem}")
    remote = [name for name, agent in config.file.agents.items() if agent.kind == "a2a"]
    if remote and (problem := missing_extra("a2a")) is not None:
        yield config.problem(("agents", remote[0], "kind"), f"agents.{remote[0]}: {problem}")
    if config.file.network.mcp and (problem := missing_extra("mcp")) is not None:
        yield config.problem(("network", "mcp"), f"network.mcp: {problem}")
    if config.file.network.a2a is not None and (problem := missing_extra("a2a")) is not None:
        yield config.problem(("network", "a2a"), f"network.a2a: {problem}")


def _check_bridges(config: LoadedConfig) -> Iterator[ConfigError]:
    """Report unknown kinds of bridges and invalid settings."""
    if config.file.bridges:
        from hubbub.app.bridges import check_bridges  # only imported if there are bridges

        yield from check_bridges(config)


def check_programs(config: LoadedConfig) -> None:
    """Check that the programs of agents are installed. Raises `ConfigProblems`."""
    problems: list[ConfigError] = []
    folder = str(config.path.parent)
    places: list[tuple[Loc, str, str]] = [
        (("agents", name, "command"), agent.command[0], folder)
        for name, agent in config.file.agents.items()
        if agent.kind == "program"
    ]
    places += [
        (("agents", name, "acp", "command"), acp.command[0], acp.cwd)
        for name, acp in programs_of(config)
    ]
    for loc, program, cwd in places:
        if shutil.which(program if os.sep not in program else os.path.join(cwd, program)):
            continue
        where = "" if os.sep in program else " on the PATH"
        text = f"{dotted(loc)}: there is no program '{program}'{where}: install it"
        problems.append(config.problem(loc, text))
    if problems:
        raise ConfigProblems(problems)


def without_key(model: str) -> str:
    """What to do about a model without an API key."""
    return (
        f"models.{model} has no API key: set OPENAI_API_KEY if its api_key refers to that, or set "
        f"models.{model}.base_url to your own server (Ollama, vLLM, llama.cpp)"
    )
