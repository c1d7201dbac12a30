"""Imports the Python code in a config and reports failures; runs in a process of its own.

The input is a JSON list of `[place, noun]`. The output is one line of JSON for each: `{path, line,
message}` for a failure, else `{tool, permission}` of the tool that a function defines, or null. The
imported code's output is discarded, so that it cannot be mistaken for an answer.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import NoReturn

from hubbub.config.paths import EVERY
from hubbub.errors import ConfigError
from hubbub.loading import load_attribute, load_module
from hubbub.wording import did_you_mean

__all__ = ["answer", "unknown_handler"]

_WANTED = {
    "object": "an LlmAgent or Agent",
    "builder": "a hubbub.PromptBuilder",
    "class": "a subclass of hubbub.Agent",
    "hooks": "a subclass of hubbub.Hooks",
}


def answer(places: str, file: int) -> NoReturn:
    """Write an answer for each place to `file`, then exit. If an import ends the process, that
    place has no answer, nor do those after it."""
    answers = os.fdopen(os.dup(file), "w", encoding="utf-8")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(nowhere, standard)
    for place, noun in json.loads(places):
        answers.write(json.dumps(_finding(place, noun)) + "\n")
        answers.flush()
    os._exit(0)  # regardless of threads that the imported code started


def _finding(place: str, noun: str) -> dict[str, str | int | None]:
    file, _, name = place.rpartition(":")
    try:
        value = load_module(Path(file)) if name == EVERY else load_attribute(place, Path())
    except ConfigError as error:
        return {"path": str(error.path), "line": error.line, "message": error.message}
    if noun == "function":
        return _function(file, name, value)
    if not _is(noun, value):
        return {"path": file, "line": None, "message": f"{name} is not {_WANTED[noun]}"}
    if isinstance(value, type) and noun == "class" and (unknown := unknown_handler(value)):
        return {"path": file, "line": None, "message": f"{name} {unknown}"}
    return {"tool": None, "permission": None}


def unknown_handler(agent: type[object]) -> str:
    """The problem of an agent whose only handlers have names that nothing calls; empty if none."""
    from hubbub.agents.python.agent import Agent

    own = [n for kind in agent.__mro__ if kind is not Agent for n in vars(kind)]
    names = [n for n in own if n.startswith("on_")]
    if not names or any(hasattr(Agent, n) for n in names):
        return ""
    known = [n for n in vars(Agent) if n.startswith("on_")]
    hint = did_you_mean(names[0], known, f"; valid: {', '.join(known)}")
    return f"has the handler {names[0]!r}, which nothing calls{hint}"


def _is(noun: str, value: object) -> bool:
    """Whether an object is of the expected kind. Imports only what that kind needs."""
    match noun:
        case "object":
            from hubbub.agents.llm_agent import is_agent

            return is_agent(value)
        case "builder":
            from hubbub.agents.prompt.builder import PromptBuilder

            return isinstance(value, PromptBuilder)
        case "class":
            from hubbub.agents.python.agent import Agent

            return isinstance(value, type) and issubclass(value, Agent)
        case _:
            from hubbub.agents.turn.hooks import Hooks

            return isinstance(value, type) and issubclass(value, Hooks)


def _function(file: str, name: str, value: object) -> dict[str, str | int | None]:
    from hubbub.agents.tools.function import as_tools

    try:
        tools = as_tools(value)
    except TypeError as error:
        return {"path": file, "line": None, "message": f"{name} cannot be a tool: {error}"}
    if not tools:
        message = f"{name} is not a function, and has no `@tool`"
        if name == EVERY:
            message = "it has no `@tool`"
        return {"path": file, "line": None, "message": message}
    if len(tools) > 1 or name == EVERY:  # the agent's tools are determined at run time
        return {"tool": None, "permission": None}
    (tool,) = tools
    return {"tool": tool.name, "permission": tool.permission}


if __name__ == "__main__":
    answer(sys.stdin.read(), 1)
