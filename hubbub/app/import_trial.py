"""Imports the Python code in a config in a separate process, where code that exits, crashes or
hangs does no harm.

The trial starts before all other checks, since these imports take the longest. If possible, the
process is a fork of this one, which has most modules loaded: a fifth of the work.
"""

from __future__ import annotations

import json
import multiprocessing
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, NamedTuple, Self, cast

from hubbub.app.import_check import answer
from hubbub.config.loader import LoadedConfig
from hubbub.config.paths import split_spec
from hubbub.config.problems import ConfigProblems, shown_path
from hubbub.config.source import Loc
from hubbub.protocol.messages import Permission

__all__ = ["ImportTrial", "MadeTool"]

IMPORT_WITHIN_S = 30.0


class MadeTool(NamedTuple):
    """The tool that a function defines."""

    name: str
    permission: Permission


@dataclass(frozen=True)
class _Spec:
    """A reference to Python code in the config, and its place."""

    text: str
    loc: Loc
    noun: str


@dataclass(frozen=True)
class _ImportedTool:
    """The outcome of an import."""

    problem: str | None = None
    tool: MadeTool | None = None


class _Process(NamedTuple):
    """The handle of an importing process."""

    wait: Callable[[float], object]
    """Wait for its end, at most for this many seconds."""
    end: Callable[[], None]


class ImportTrial:
    """The import of a config's Python code, from enter to exit."""

    def __init__(self, config: LoadedConfig, within_s: float = IMPORT_WITHIN_S):
        self._config, self._specs, self._within_s = config, list(_specs(config)), within_s

    def __enter__(self) -> Self:
        self._answers = TemporaryFile()
        self._until = time.monotonic() + self._within_s
        if not self._specs:
            return self
        places = json.dumps([(spec.text, spec.noun) for spec in self._specs])
        can_fork = sys.platform == "linux" and threading.active_count() == 1  # else it can hang
        self._process = (_fork if can_fork else _spawn)(places, self._answers)
        return self

    def __exit__(self, *exc: object) -> None:
        if self._specs:
            self._process.end()
        self._answers.close()

    def end(self) -> Mapping[str, MadeTool]:
        """The tools that functions define, by `file.py:function`.

        Raises `ConfigProblems`, with file, line and exception, if anything cannot be imported or is
        of the wrong kind.
        """
        outcomes = self._outcomes()
        problems = [
            self._config.problem(spec.loc, outcome.problem)
            for spec, outcome in zip(self._specs, outcomes, strict=True)
            if outcome.problem
        ]
        if problems:
            raise ConfigProblems(problems)
        return {
            spec.text: outcome.tool
            for spec, outcome in zip(self._specs, outcomes, strict=True)
            if outcome.tool is not None
        }

    def _outcomes(self) -> list[_ImportedTool]:
        """The outcome of each import. Those after one that ended the process were not tried."""
        if not self._specs:
            return []
        specs, ended = self._specs, "ends the process that imports it"
        self._process.wait(max(0, self._until - time.monotonic()))
        self._process.end()
        if time.monotonic() >= self._until:
            within = f"{self._within_s:g} s"
            ended = f"was not imported within {within}: move long-running code into a method"
        self._answers.seek(0)
        outcomes = [_outcome(json.loads(line)) for line in self._answers]
        if len(outcomes) < len(specs):
            file = (split_spec(specs[len(outcomes)].text) or ("", ""))[0]
            outcomes.append(_ImportedTool(problem=f"{shown_path(Path(file))} {ended}"))
        return outcomes + [_ImportedTool()] * (len(specs) - len(outcomes))


def _fork(places: str, answers: IO[bytes]) -> _Process:
    fork = multiprocessing.get_context("fork")
    process = fork.Process(target=answer, args=(places, answers.fileno()))
    process.start()

    def end() -> None:
        process.kill()
        process.join()

    return _Process(process.join, end)


def _spawn(places: str, answers: IO[bytes]) -> _Process:
    with TemporaryFile() as file:
        file.write(places.encode())
        file.seek(0)
        process = subprocess.Popen(
            [sys.executable, "-m", "hubbub.app.import_check"],
            stdin=file,
            stdout=answers,
            stderr=subprocess.DEVNULL,
        )

    def wait(seconds: float) -> None:
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)

    def end() -> None:
        process.kill()
        process.wait()

    return _Process(wait, end)


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


def _outcome(answer: Mapping[str, str | int | None]) -> _ImportedTool:
    if "message" not in answer:
        name = answer["tool"]
        permission = cast(Permission, answer["permission"])
        return _ImportedTool(tool=None if name is None else MadeTool(str(name), permission))
    place = shown_path(Path(str(answer["path"])))
    line = f":{answer['line']}" if answer["line"] else ""
    return _ImportedTool(problem=f"{place}{line}: {answer['message']}")
