"""What is checked before anything is started, so that a mistake leaves nothing half-started."""

from __future__ import annotations

import errno
import json
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from hubbub.agents.knowledge import SEARCH_KNOWLEDGE
from hubbub.agents.skills import LOAD_SKILL
from hubbub.app.prompts import check_prompts, check_skills
from hubbub.config.address import Address
from hubbub.config.explain import explain
from hubbub.config.loader import LoadedConfig, load
from hubbub.config.models import AgentConfig, ModelConfig
from hubbub.config.paths import split_spec
from hubbub.config.problems import ConfigProblems, nearest, shown_path
from hubbub.config.source import Loc
from hubbub.errors import ConfigError, UserError
from hubbub.mods.api import Mod, ModConfig
from hubbub.mods.loader import known_mods

__all__ = [
    "OPENAI",
    "check_imports",
    "check_models",
    "check_mods",
    "check_port",
    "check_tools",
    "lacks_key",
    "load_checked",
    "load_valid",
]

OPENAI = "https://api.openai.com/v1"
IMPORT_WITHIN_S = 30.0


@dataclass(frozen=True)
class _Spec:
    """Python that the config names, and where it does."""

    text: str
    loc: Loc
    noun: str


def load_valid(path: Path, overrides: Mapping[str, str] | None = None) -> LoadedConfig:
    """The config at `path`, if it is one that could run somewhere.

    Raises ConfigError with everything that is wrong in it.
    """
    config = load(path, mods=known_mods().keys(), overrides=overrides)
    check_mods(config)
    check_tools(config)
    check_imports(config)
    problems = [*check_prompts(config), *check_skills(config)]
    if problems:
        raise ConfigProblems(problems)
    return config


def load_checked(path: Path, overrides: Mapping[str, str] | None = None) -> LoadedConfig:
    """The config at `path`, if it can run here and now. Raises UserError."""
    config = load_valid(path, overrides)
    check_models(config)
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
                f"the address {address} is in use, perhaps by another network (`hubbub status`): "
                f"stop that one, or choose another with --listen {address.host}:{address.port + 1}"
            ) from None
        why = error.strerror or str(error)
        raise UserError(
            f"cannot listen on {address}: {why}; choose another with --listen"
        ) from None


def check_mods(config: LoadedConfig) -> None:
    """The mods of the config have the settings they understand. Raises ConfigProblems."""
    known = known_mods()
    problems: list[ConfigError] = []
    seen: set[str] = set()
    for n, entry in enumerate(config.file.mods):
        name, settings = (entry, None) if isinstance(entry, str) else next(iter(entry.items()))
        if name in seen:
            problems.append(config.problem(("mods", n), f"the mod '{name}' is listed twice"))
        seen.add(name)
        problems += _mod_problems(config, ("mods", n, name), known[name], settings or {})
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


def check_tools(config: LoadedConfig) -> None:
    """The tools that agents name exist in this network. Raises ConfigProblems."""
    from hubbub.mods.loader import load_mods
    from hubbub.network.operations import CORE_OPERATIONS

    mods = [op for mod in load_mods(config.file.mods) for op in mod.operations()]
    known = {op.name for op in (*CORE_OPERATIONS, *mods) if op.tool} | {"finish"}
    problems = [
        config.problem(
            ("agents", name, "tools", n),
            f"agents.{name} names the unknown tool '{tool}'{nearest(tool, known)}",
        )
        for name, agent in config.file.agents.items()
        for n, tool in enumerate(agent.tools or ())
        if split_spec(tool) is None and tool not in known | _given(config.file.agent(name))
    ]
    if problems:
        raise ConfigProblems(problems)


def _given(agent: AgentConfig) -> set[str]:
    """The tools that an agent has by its knowledge and skills."""
    given = {SEARCH_KNOWLEDGE} if agent.knowledge.folders else set()
    return given | ({LOAD_SKILL} if agent.skills else set())


def check_models(config: LoadedConfig) -> None:
    """No agent needs a key that is not there. Raises UserError with one sentence."""
    used = {model for agent in config.file.agents.values() for model in agent.used_models}
    without = sorted(name for name in used if lacks_key(config.file.models[name]))
    if not without:
        return
    place = shown_path(config.path)
    raise UserError(
        f"{place} needs a model and none can be reached (models.{without[0]} has no key): set "
        "OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own (Ollama, vLLM, llama.cpp); "
        "`hubbub up configs/quickstart.yaml` works without any model"
    )


def lacks_key(model: ModelConfig) -> bool:
    """Whether the endpoint is OpenAI's own, which answers nobody without a key."""
    return not model.api_key and model.base_url.rstrip("/") == OPENAI


def check_imports(config: LoadedConfig, within_s: float = IMPORT_WITHIN_S) -> None:
    """The Python of the agents can be imported and is what it is said to be.

    A process of its own tries it, so that code that exits, crashes or hangs harms nobody. Raises
    ConfigProblems with file, line and exception.
    """
    specs = list(_specs(config))
    if not specs:
        return
    problems = [
        config.problem(spec.loc, finding)
        for spec, finding in zip(specs, _try_imports(specs, within_s), strict=True)
        if finding
    ]
    if problems:
        raise ConfigProblems(problems)


def _specs(config: LoadedConfig) -> Iterator[_Spec]:
    for name, agent in config.file.agents.items():
        if agent.class_ is not None:
            yield _Spec(agent.class_, ("agents", name, "class"), "class")
        for n, tool in enumerate(agent.tools or ()):
            if split_spec(tool) is not None:
                yield _Spec(tool, ("agents", name, "tools", n), "function")
        for n, hook in enumerate(agent.hooks):
            yield _Spec(hook, ("agents", name, "hooks", n), "hooks")


def _try_imports(specs: Sequence[_Spec], within_s: float) -> list[str | None]:
    """What is wrong with each; None where nothing is."""
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
    found = [json.loads(line) for line in answers.splitlines()]
    findings = [_sentence(answer) if answer else None for answer in found]
    if len(findings) < len(specs):
        file = (split_spec(specs[len(findings)].text) or ("", ""))[0]
        findings.append(f"{shown_path(Path(file))} {ended}")
    return findings + [None] * (len(specs) - len(findings))


def _sentence(answer: Mapping[str, str | int | None]) -> str:
    place = shown_path(Path(str(answer["path"])))
    line = f":{answer['line']}" if answer["line"] else ""
    return f"{place}{line}: {answer['message']}"
