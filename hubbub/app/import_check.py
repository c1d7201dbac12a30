"""Run in a process of its own: imports the Python that a config names and tells what failed.

Asked by a JSON list of `[place, noun]`, it answers each with one line of JSON: `{path, line,
message}` if something is wrong, else `{tool, permission}`: of the tool that a function makes, or
null. What the imported code prints goes nowhere, so that it cannot be taken for an answer.
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

__all__ = ["answer"]

_WANTED = {
    "object": "LlmAgent or Agent",
    "builder": "hubbub.PromptBuilder",
    "class": "subclass of hubbub.Agent",
    "hooks": "subclass of hubbub.Hooks",
}


def answer(asked: str, file: int) -> NoReturn:
    """Answer in `file` for each place in turn, and end the process; a place whose import ends it is
    the last answered."""
    answers = os.fdopen(os.dup(file), "w", encoding="utf-8")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(nowhere, standard)
    for place, noun in json.loads(asked):
        answers.write(json.dumps(_finding(place, noun)) + "\n")
        answers.flush()
    os._exit(0)  # whatever threads the imported code has started


def _finding(place: str, noun: str) -> dict[str, str | int | None]:
    file, _, name = place.rpartition(":")
    try:
        found = load_module(Path(file)) if name == EVERY else load_attribute(place, Path())
    except ConfigError as error:
        return {"path": str(error.path), "line": error.line, "message": error.message}
    if noun == "function":
        return _function(file, name, found)
    if not _is(noun, found):
        return {"path": file, "line": None, "message": f"{name} is no {_WANTED[noun]}"}
    return {"tool": None, "permission": None}


def _is(noun: str, found: object) -> bool:
    """Whether it is what it stands for. What that is made of is loaded only if it is looked for."""
    match noun:
        case "object":
            from hubbub.agents.llm_agent import is_agent

            return is_agent(found)
        case "builder":
            from hubbub.agents.prompt.builder import PromptBuilder

            return isinstance(found, PromptBuilder)
        case "class":
            from hubbub.agents.python.agent import Agent

            return isinstance(found, type) and issubclass(found, Agent)
        case _:
            from hubbub.agents.turn.hooks import Hooks

            return isinstance(found, type) and issubclass(found, Hooks)


def _function(file: str, name: str, found: object) -> dict[str, str | int | None]:
    from hubbub.agents.tools.function import as_tools

    try:
        tools = as_tools(found)
    except TypeError as error:
        return {"path": file, "line": None, "message": f"{name} cannot be a tool: {error}"}
    if not tools:
        message = f"{name} is not a function, and contains no `@tool`"
        return {"path": file, "line": None, "message": message}
    if len(tools) > 1 or name == EVERY:  # which of them an agent has is known when it runs
        return {"tool": None, "permission": None}
    (tool,) = tools
    return {"tool": tool.name, "permission": tool.permission}


if __name__ == "__main__":
    answer(sys.stdin.read(), 1)
