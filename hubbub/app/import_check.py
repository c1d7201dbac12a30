"""Run as a process of its own: imports the Python that a config names and tells what failed.

stdin: a JSON list of `[place, noun]`; stdout: one line of JSON for each, `{path, line, message}` if
something is wrong, else `{tool, permission}`: of the tool that a function makes, or null. What the
imported code prints goes to stderr, so that it cannot be taken for an answer.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from hubbub.agents.declared import is_agent
from hubbub.agents.prompt.builder import PromptBuilder
from hubbub.agents.python.agent import Agent
from hubbub.agents.tools.function import as_tools
from hubbub.agents.turn.hooks import Hooks
from hubbub.config.paths import EVERY
from hubbub.errors import ConfigError
from hubbub.loading import load_attribute, load_module

__all__ = ["main"]


def main() -> None:
    """Answer for each place in turn; a place whose import ends the process is the last answered."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for place, noun in json.load(sys.stdin):
        answers.write(json.dumps(_finding(place, noun)) + "\n")
        answers.flush()
    os._exit(0)  # whatever threads the imported code has started


def _finding(place: str, noun: str) -> dict[str, str | int | None]:
    file, _, name = place.rpartition(":")
    try:
        found = load_module(Path(file)) if name == EVERY else load_attribute(place, Path())
    except ConfigError as error:
        return {"path": str(error.path), "line": error.line, "message": error.message}
    if noun == "object" and not is_agent(found):
        return {"path": file, "line": None, "message": f"{name} is no LlmAgent or Agent"}
    if noun == "builder" and not isinstance(found, PromptBuilder):
        return {"path": file, "line": None, "message": f"{name} is no hubbub.PromptBuilder"}
    if noun == "class" and not (isinstance(found, type) and issubclass(found, Agent)):
        return {"path": file, "line": None, "message": f"{name} is no subclass of hubbub.Agent"}
    if noun == "hooks" and not (isinstance(found, type) and issubclass(found, Hooks)):
        return {"path": file, "line": None, "message": f"{name} is no subclass of hubbub.Hooks"}
    if noun != "function":
        return {"tool": None, "permission": None}
    try:
        tools = as_tools(found)
    except TypeError as error:
        return {"path": file, "line": None, "message": f"{name} cannot be a tool: {error}"}
    if not tools:
        message = f"{name} is no function, and has no `@tool`"
        return {"path": file, "line": None, "message": message}
    if len(tools) > 1 or name == EVERY:
        return {
            "tool": None,
            "permission": None,
        }  # which of them an agent has is known when it runs
    (tool,) = tools
    return {"tool": tool.name, "permission": tool.permission}


if __name__ == "__main__":
    main()
