"""What is checked before anything is started, so that a mistake leaves nothing half-started."""

from __future__ import annotations

import errno
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from pydantic import TypeAdapter, ValidationError

from hubbub.agents.prompt.system import system_prompt
from hubbub.agents.prompt.tokens import counter_for
from hubbub.agents.tools.naming import (
    KnownTool,
    WrongName,
    refused_names,
    wrong_names,
)
from hubbub.agents.window import sizes
from hubbub.app.prompts import check_prompts, check_skills
from hubbub.config.agents import AcpConfig
from hubbub.config.explain import dotted, explain
from hubbub.config.loader import LoadedConfig, load
from hubbub.config.models import AgentConfig, ModelConfig
from hubbub.config.paths import split_spec
from hubbub.config.problems import ConfigProblems, shown_path
from hubbub.config.source import Loc
from hubbub.config.units import Address
from hubbub.errors import ConfigError, UserError
from hubbub.loading import missing_extra
from hubbub.mods.api import Mod, ModConfig
from hubbub.mods.loader import check_company, find_mod, known_mods

__all__ = [
    "OPENAI",
    "check_imports",
    "check_models",
    "check_mods",
    "check_port",
    "check_programs",
    "check_tools",
    "check_windows",
    "lacks_key",
    "load_checked",
    "load_valid",
    "programs_of",
    "without_key",
]

OPENAI = "https://api.openai.com/v1"
IMPORT_WITHIN_S = 30.0
_NOT_TRIED: Mapping[str, KnownTool] = MappingProxyType({})
_known_tool = TypeAdapter(KnownTool)


@dataclass(frozen=True)
class _Spec:
    """Python that the config names, and where it does."""

    text: str
    loc: Loc
    noun: str


@dataclass(frozen=True)
class _Found:
    """What came of importing one of them."""

    wrong: str | None = None
    tool: KnownTool | None = None
    """The tool that it makes, if it is a function."""


def load_valid(path: Path, overrides: Mapping[str, str] | None = None) -> LoadedConfig:
    """The config at `path`, if it is one that could run somewhere.

    Raises ConfigError with everything that is wrong in it.
    """
    config = load(path, mods=known_mods().keys(), overrides=overrides)
    check_mods(config)
    check_tools(config, check_imports(config))
    problems = [*check_prompts(config), *check_skills(config), *check_windows(config)]
    problems += [*_check_mcp(config), *_check_doors(config), *_check_bridges(config)]
    if problems:
        raise ConfigProblems(problems)
    return config


def load_checked(path: Path, overrides: Mapping[str, str] | None = None) -> LoadedConfig:
    """The config at `path`, if it can run here and now. Raises UserError."""
    config = load_valid(path, overrides)
    check_models(config)
    check_programs(config)
    check_port(config.address)
    return config


def check_port(address: Address) -> None:
    """Raises UserError if nothing can listen there now."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        socket.create_server((address.host, address.port), family=family).close()
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise UserError(
                f"the address {address} is in use, perhaps by another network "
                "(`hubbub network status`): "
                f"stop that one, or choose another with --listen {address.host}:{address.port + 1}"
            ) from None
        why = error.strerror or str(error)
        raise UserError(
            f"cannot listen on {address}: {why}; choose another with --listen"
        ) from None


def check_mods(config: LoadedConfig) -> None:
    """The mods of the config can be imported, live together, and have settings that they
    understand. Raises ConfigProblems."""
    problems: list[ConfigError] = []
    before: list[type[Mod]] = []
    for n, entry in enumerate(config.file.mods):
        name, settings = (entry, None) if isinstance(entry, str) else next(iter(entry.items()))
        try:
            kind = find_mod(name, config.file.network.allow_mods).kind
            check_company(kind, before)
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


def check_tools(config: LoadedConfig, functions: Mapping[str, KnownTool] = _NOT_TRIED) -> None:
    """The tools that agents name exist in this network.

    `functions` are the tools that the agents' functions make, by `file.py:function`: see
    `check_imports`. Where one is missing, any name may be its. Raises ConfigProblems.
    """
    offered = _offered(config)
    problems: list[ConfigError] = []
    for name in config.file.agents:
        agent = config.file.agent(name)
        wrong = _wrong_names(agent, offered, functions)
        problems += [_problem(config, name, one) for one in wrong]
    if problems:
        raise ConfigProblems(problems)


def _offered(config: LoadedConfig) -> Sequence[KnownTool]:
    """What agents may call of the network."""
    from hubbub.mods.loader import operations_of
    from hubbub.network.operations import CORE_OPERATIONS

    return [
        KnownTool(op.name, op.permission, "cause" in op.input.model_fields)
        for op in (*CORE_OPERATIONS, *operations_of(config.file))
        if op.tool and op.permission != "admin"
    ]


def _wrong_names(
    agent: AgentConfig, offered: Sequence[KnownTool], functions: Mapping[str, KnownTool]
) -> Iterator[WrongName]:
    places = [tool for tool in agent.tools or () if split_spec(tool) is not None]
    tried = all(place in functions for place in places)
    own = {place: functions[place] for place in places} if tried else {}
    names = {place: tool.name for place, tool in own.items()} if tried else None
    refused = refused_names(agent, [*offered, *own.values()])
    return wrong_names(agent, [tool.name for tool in offered], names, refused)


def _problem(config: LoadedConfig, agent: str, wrong: WrongName) -> ConfigError:
    place: Loc = ("agents", agent, wrong.key, *(() if wrong.at is None else (wrong.at,)))
    return config.problem(place, f"agents.{agent}.{wrong.key}: {wrong.message}")


def _check_mcp(config: LoadedConfig) -> Iterator[ConfigError]:
    """What agents with MCP servers need, reported once."""
    agents = config.file.agents.items()
    using = (name for name, agent in agents if agent.mcp and agent.kind != "python")
    name, wrong = next(using, None), missing_extra("mcp")
    if name is not None and wrong is not None:
        yield config.problem(("agents", name, "mcp"), f"agents.{name}.mcp: {wrong}")


def check_models(config: LoadedConfig) -> None:
    """No agent needs a key that is not there. Raises UserError with one sentence."""
    used = {model for agent in config.file.agents.values() for model in agent.used_models}
    without = sorted(name for name in used if lacks_key(config.file.models[name]))
    if not without:
        return
    place = shown_path(config.path)
    raise UserError(
        f"{place} needs a model and none can be reached: {without_key(without[0])}; "
        "`hubbub up configs/quickstart.yaml` works without any model"
    )


def programs_of(config: LoadedConfig) -> Sequence[tuple[str, AcpConfig]]:
    """The agents that are programs of their own, and their programs."""
    agents = config.file.agents.items()
    return [(name, agent.acp) for name, agent in agents if agent.kind == "acp" and agent.acp]


def _check_doors(config: LoadedConfig) -> Iterator[ConfigError]:
    """The extras that the config's doors need, each reported once."""
    for name, _ in programs_of(config)[:1]:
        if (wrong := missing_extra("acp")) is not None:
            yield config.problem(("agents", name, "kind"), f"agents.{name}: {wrong}")
    elsewhere = [name for name, agent in config.file.agents.items() if agent.kind == "a2a"]
    if elsewhere and (wrong := missing_extra("a2a")) is not None:
        yield config.problem(("agents", elsewhere[0], "kind"), f"agents.{elsewhere[0]}: {wrong}")
    if config.file.network.mcp and (wrong := missing_extra("mcp")) is not None:
        yield config.problem(("network", "mcp"), f"network.mcp: {wrong}")
    if config.file.network.a2a is not None and (wrong := missing_extra("a2a")) is not None:
        yield config.problem(("network", "a2a"), f"network.a2a: {wrong}")


def _check_bridges(config: LoadedConfig) -> Iterator[ConfigError]:
    """The other chats are known, and understand their settings."""
    if config.file.bridges:
        from hubbub.app.bridges import check_bridges  # who has none imports none

        yield from check_bridges(config)


def check_programs(config: LoadedConfig) -> None:
    """The programs of agents are on this machine. Raises ConfigProblems."""
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
        text = f"{dotted(loc)}: there is no program '{program}'"
        where = "" if os.sep in program else " on the PATH"
        problems.append(config.problem(loc, f"{text}{where}: install it"))
    if problems:
        raise ConfigProblems(problems)


def lacks_key(model: ModelConfig) -> bool:
    """Whether the endpoint is OpenAI's own, which answers nothing without a key."""
    return not model.api_key and model.base_url.rstrip("/") == OPENAI


def without_key(model: str) -> str:
    """What to do about a model of this name that lacks one."""
    return (
        f"models.{model} has no key: set OPENAI_API_KEY where its api_key asks for that, or "
        f"models.{model}.base_url to a server of your own (Ollama, vLLM, llama.cpp)"
    )


def check_imports(
    config: LoadedConfig, within_s: float = IMPORT_WITHIN_S
) -> Mapping[str, KnownTool]:
    """The Python of the agents can be imported and is what it is said to be.

    A process of its own tries it, so that code that exits, crashes or hangs does no harm. Returns
    the tools that functions make, by `file.py:function`. Raises ConfigProblems with file, line and
    exception.
    """
    specs = list(_specs(config))
    if not specs:
        return {}
    found = _try_imports(specs, within_s)
    problems = [
        config.problem(spec.loc, outcome.wrong)
        for spec, outcome in zip(specs, found, strict=True)
        if outcome.wrong
    ]
    if problems:
        raise ConfigProblems(problems)
    return {
        spec.text: outcome.tool
        for spec, outcome in zip(specs, found, strict=True)
        if outcome.tool is not None
    }


def _specs(config: LoadedConfig) -> Iterator[_Spec]:
    for name, agent in config.file.agents.items():
        if agent.object is not None:
            yield _Spec(agent.object, ("agents", name, "object"), "object")
        if agent.class_ is not None:
            yield _Spec(agent.class_, ("agents", name, "class"), "class")
        prompt = ("agents", name, "prompt")
        if agent.prompt is not None and agent.prompt.builder is not None:
            yield _Spec(agent.prompt.builder, prompt, "builder")
        for n, tool in enumerate(agent.tools or ()):
            if split_spec(tool) is not None:
                yield _Spec(tool, ("agents", name, "tools", n), "function")
        for n, hook in enumerate(agent.hooks):
            yield _Spec(hook, ("agents", name, "hooks", n), "hooks")


def _try_imports(specs: Sequence[_Spec], within_s: float) -> list[_Found]:
    """What came of each. Those behind one that ended the process were not tried."""
    asked = json.dumps([(spec.text, spec.noun) for spec in specs])
    ended = "ends the process that imports it"
    try:
        tried = subprocess.run(
            [sys.executable, "-m", "hubbub.app.import_check"],
            input=asked,
            capture_output=True,
            text=True,
            timeout=within_s,
            check=False,
        )
        answers = tried.stdout
    except subprocess.TimeoutExpired as error:
        answers = (error.stdout or b"").decode() if isinstance(error.stdout, bytes) else ""
        ended = f"is not imported after {within_s:g} s: what runs long belongs in a method"
    found = [_found(json.loads(line)) for line in answers.splitlines()]
    if len(found) < len(specs):
        file = (split_spec(specs[len(found)].text) or ("", ""))[0]
        found.append(_Found(wrong=f"{shown_path(Path(file))} {ended}"))
    return found + [_Found()] * (len(specs) - len(found))


def _found(answer: Mapping[str, str | int | None]) -> _Found:
    if "message" not in answer:
        name, permission = answer["tool"], answer["permission"]
        if name is None:
            return _Found()
        return _Found(tool=_known_tool.validate_python({"name": name, "permission": permission}))
    place = shown_path(Path(str(answer["path"])))
    line = f":{answer['line']}" if answer["line"] else ""
    return _Found(wrong=f"{place}{line}: {answer['message']}")


# Context windows ----------------------------------------------------------------------------------


def check_windows(config: LoadedConfig) -> list[ConfigError]:
    """What is wrong with the sizes that models and agents give, each with its line.

    Only what cannot work whatever happens: how much a question has is known when it is asked.
    """
    problems = [
        config.problem(
            ("models", name, "max_output_tokens"),
            f"models.{name}: an answer of {model.max_output_tokens} tokens leaves nothing of a "
            f"window of {model.context_window}: set max_output_tokens to less",
        )
        for name, model in config.file.models.items()
        if model.context_window is not None
        and (model.max_output_tokens or 0) >= model.context_window
    ]
    for name, agent in config.file.agents.items():
        for model in sorted(agent.used_models):
            problems += _wrong(config, name, agent, config.file.models[model])
    return problems


def _wrong(
    config: LoadedConfig, name: str, agent: AgentConfig, model: ModelConfig
) -> Iterator[ConfigError]:
    found = sizes(agent, model)
    if found is None:
        return
    (size, reserve), at = found, ("agents", name, "context")
    if reserve >= size:
        what = f"{reserve} tokens reserved for the answer leave nothing of a window of {size}"
        yield config.problem((*at, "reserve"), f"agents.{name}.context.reserve: {what}")
        return
    needed = _least(config, name, agent, model, size - reserve)
    if needed is not None:
        said = f"agents.{name}: its fixed instructions have {needed} tokens, and of a window of"
        what = f"{said} {size} there are {size - reserve} for a question"
        yield config.problem((*at, "window"), f"{what}: raise the window, or shorten it")


def _least(
    config: LoadedConfig, name: str, agent: AgentConfig, model: ModelConfig, room: int
) -> int | None:
    """The tokens that the system message has at least; None: it fits in `room`."""
    text = agent.instruction
    if agent.prompt is None and agent.kind == "llm":  # else some of the rest may not be in it
        text = system_prompt(text, name, config.file.network.name)
    if len(text.encode()) <= room:
        return None  # no token is less than a byte: the vocabulary need not be loaded
    tokens = counter_for(model.model).count(text)
    return tokens if tokens > room else None
