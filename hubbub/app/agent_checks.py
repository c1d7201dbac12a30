"""What is checked of agents with models before anything is started: tools, prompts, windows.

It needs what such agents are made of, which a network without them does not load.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from hubbub.agents.parts import window_size
from hubbub.agents.prompt.system import system_prompt
from hubbub.agents.prompt.tokens import counter_for
from hubbub.agents.tools.tool_names import (
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
from hubbub.config.problems import ConfigProblems
from hubbub.config.source import Loc
from hubbub.errors import ConfigError

__all__ = ["agent_problems", "check_tools", "check_windows"]

_NOT_TRIED: Mapping[str, MadeTool] = MappingProxyType({})


def agent_problems(config: LoadedConfig, functions: Mapping[str, MadeTool]) -> list[ConfigError]:
    """What is wrong with the agents. Raises ConfigProblems for tools that there are not."""
    check_tools(config, functions)
    return [*check_prompts(config), *check_skills(config), *check_windows(config)]


# Tools --------------------------------------------------------------------------------------------


def check_tools(config: LoadedConfig, functions: Mapping[str, MadeTool] = _NOT_TRIED) -> None:
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
    found = window_size(agent, model)
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
