"""Checks of agents with models before anything starts: tools, prompts, context windows.

Imports everything that such agents need, which a network without them does not load.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType

from hubbub.agents.parts import window_size
from hubbub.agents.prompt.system import system_prompt
from hubbub.agents.prompt.tokens import counter_for
from hubbub.agents.tools.tool_names import (
    ALWAYS,
    KnownTool,
    WrongName,
    forbidden_names,
    wrong_names,
)
from hubbub.app.import_trial import MadeTool
from hubbub.app.prompts import check_prompts, check_skills
from hubbub.config.loader import LoadedConfig
from hubbub.config.models import AgentConfig, ModelConfig
from hubbub.config.paths import split_spec
from hubbub.config.problems import ConfigProblems, nearest
from hubbub.config.source import Loc
from hubbub.errors import ConfigError

__all__ = ["agent_problems", "check_tools", "check_windows"]

_NOT_TRIED: Mapping[str, MadeTool] = MappingProxyType({})


def agent_problems(config: LoadedConfig, functions: Mapping[str, MadeTool]) -> list[ConfigError]:
    """Problems with the agents. Raises `ConfigProblems` for unknown tools."""
    check_tools(config, functions)
    return [*check_prompts(config), *check_skills(config), *check_windows(config)]


# Tools --------------------------------------------------------------------------------------------


def check_tools(config: LoadedConfig, functions: Mapping[str, MadeTool] = _NOT_TRIED) -> None:
    """Check that the tools of agents exist in this network. Raises `ConfigProblems`.

    `functions` are the tools that functions define, by `file.py:function`, from `ImportTrial`.
    For functions that are missing there, any tool name is accepted.
    """
    offered = _offered(config)
    problems = list(_wrong_choices(config, {*ALWAYS, *(tool.name for tool in offered)}))
    for name in config.file.agents:
        agent = config.file.agent(name)
        wrong = _wrong_names(agent, offered, functions)
        problems += [_problem(config, name, one) for one in wrong]
    if problems:
        raise ConfigProblems(problems)


def _wrong_choices(config: LoadedConfig, names: Collection[str]) -> Iterator[ConfigError]:
    """What owners could not choose as a tool of an agent that they create."""
    folder = config.file.network.agent_folder
    for n, name in enumerate((folder.tools if folder else None) or ()):
        if name not in names:
            text = f"network.agent_folder.tools: there is no operation '{name}'"
            at: Loc = ("network", "agent_folder", "tools", n)
            yield config.problem(at, f"{text}{nearest(name, names)}")


def _offered(config: LoadedConfig) -> Sequence[KnownTool]:
    """The network's operations that agents may call."""
    from hubbub.mods.loader import operations_of
    from hubbub.network.operations import CORE_OPERATIONS

    return [
        KnownTool(op.name, op.permission, "cause" in op.input.model_fields)
        for op in (*CORE_OPERATIONS, *operations_of(config.file))
        if op.tool and op.permission != "admin"
    ]


def _wrong_names(
    agent: AgentConfig, offered: Sequence[KnownTool], functions: Mapping[str, MadeTool]
) -> Iterator[WrongName]:
    places = [tool for tool in agent.tools or () if split_spec(tool) is not None]
    tried = all(place in functions for place in places)
    own = {place: KnownTool(*functions[place]) for place in places} if tried else {}
    names = {place: tool.name for place, tool in own.items()} if tried else None
    refused = forbidden_names(agent, [*offered, *own.values()])
    return wrong_names(agent, [tool.name for tool in offered], names, refused)


def _problem(config: LoadedConfig, agent: str, wrong: WrongName) -> ConfigError:
    place: Loc = ("agents", agent, wrong.key, *(() if wrong.at is None else (wrong.at,)))
    return config.problem(place, f"agents.{agent}.{wrong.key}: {wrong.message}")


# Context windows ----------------------------------------------------------------------------------


def check_windows(config: LoadedConfig) -> list[ConfigError]:
    """Problems with the token sizes of models and agents.

    Covers only sizes that can never work: the size of a request is known at run time.
    """
    problems = [
        config.problem(
            ("models", name, "max_output_tokens"),
            f"models.{name}: an answer of {model.max_output_tokens} tokens fills the whole window "
            f"of {model.context_window}: reduce max_output_tokens",
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
    window = window_size(agent, model)
    if window is None:
        return
    (size, reserve), at = window, ("agents", name, "context")
    if reserve >= size:
        what = f"{reserve} tokens reserved for the answer fill the whole window of {size}"
        yield config.problem((*at, "reserve"), f"agents.{name}.context.reserve: {what}")
        return
    needed = _least(config, name, agent, model, size - reserve)
    if needed is not None:
        what = f"agents.{name}: its fixed instructions have {needed} tokens, but a window of {size}"
        what = f"{what} leaves {size - reserve} for a request"
        yield config.problem((*at, "window"), f"{what}: enlarge the window, or shorten them")


def _least(
    config: LoadedConfig, name: str, agent: AgentConfig, model: ModelConfig, room: int
) -> int | None:
    """The minimum size of the system message in tokens; None if it fits in `room`."""
    text = agent.instruction
    if agent.prompt is None and agent.kind == "llm":  # otherwise parts may be left out
        text = system_prompt(text, name, config.file.network.name)
    if len(text.encode()) <= room:
        return None  # a token is at least one byte, so the vocabulary is not needed
    tokens = counter_for(model.model).count(text)
    return tokens if tokens > room else None
