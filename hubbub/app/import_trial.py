"""The Python that a config names, tried in a process of its own: code that exits, crashes or hangs
there does no harm.

It is begun before all else is checked, since loading what agents are made of takes the longest.
Where it can, it is a copy of this process, which has loaded most of that: a fifth of the work.
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
from types import TracebackType
from typing import IO, NamedTuple, Self, cast

from hubbub.app.import_check import answer
from hubbub.config.loader import LoadedConfig
from hubbub.config.paths import split_spec
from hubbub.config.problems import ConfigProblems, shown_path
from hubbub.config.source import Loc
from hubbub.protocol.messages import Permission

__all__ = ["ImportTrial", "MadeTool", "check_imports"]

IMPORT_WITHIN_S = 30.0


class MadeTool(NamedTuple):
    """The tool that a function makes."""

    name: str
    permission: Permission


@dataclass(frozen=True)
class _Spec:
    """Python that the config names, and where it does."""

    text: str
    loc: Loc
    noun: str


@dataclass(frozen=True)
class _ImportedTool:
    """What came of importing one of them."""

    wrong: str | None = None
    tool: MadeTool | None = None


def check_imports(
    config: LoadedConfig, within_s: float = IMPORT_WITHIN_S
) -> Mapping[str, MadeTool]:
    """Try the Python of the agents; answers and raises as `ImportTrial.end`."""
    with ImportTrial(config, within_s) as trial:
        return trial.end()


class _Process(NamedTuple):
    """A process that answers, and how to deal with it."""

    wait: Callable[[float], object]
    """Returns when it has ended, at the latest after so many seconds."""
    end: Callable[[], None]


class ImportTrial:
    """The trial of a config's Python, from enter to exit."""

    def __init__(self, config: LoadedConfig, within_s: float = IMPORT_WITHIN_S):
        self._config, self._specs, self._within_s = config, list(_specs(config)), within_s

    def __enter__(self) -> Self:
        self._answers = TemporaryFile()
        self._until = time.monotonic() + self._within_s
        if not self._specs:
            return self
        asked = json.dumps([(spec.text, spec.noun) for spec in self._specs])
        copied = sys.platform == "linux" and threading.active_count() == 1  # elsewhere it may hang
        self._process = (_copy if copied else _other)(asked, self._answers)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._specs:
            self._process.end()
        self._answers.close()

    def end(self) -> Mapping[str, MadeTool]:
        """The tools that functions make, by `file.py:function`.

        Raises ConfigProblems, with file, line and exception, if anything cannot be imported or is
        not what it is said to be.
        """
        found = self._found()
        problems = [
            self._config.problem(spec.loc, outcome.wrong)
            for spec, outcome in zip(self._specs, found, strict=True)
            if outcome.wrong
        ]
        if problems:
            raise ConfigProblems(problems)
        return {
            spec.text: outcome.tool
            for spec, outcome in zip(self._specs, found, strict=True)
            if outcome.tool is not None
        }

    def _found(self) -> list[_ImportedTool]:
        """What came of each. Those behind one that ended the process were not tried."""
        if not self._specs:
            return []
        specs, ended = self._specs, "ends the process that imports it"
        self._process.wait(max(0, self._until - time.monotonic()))
        self._process.end()
        if time.monotonic() >= self._until:
            within = f"{self._within_s:g} s"
            ended = f"is not imported after {within}: what runs long belongs in a method"
        self._answers.seek(0)
        found = [_found(json.loads(line)) for line in self._answers]
        if len(found) < len(specs):
            file = (split_spec(specs[len(found)].text) or ("", ""))[0]
            found.append(_ImportedTool(wrong=f"{shown_path(Path(file))} {ended}"))
        return found + [_ImportedTool()] * (len(specs) - len(found))


def _copy(asked: str, answers: IO[bytes]) -> _Process:
    fork = multiprocessing.get_context("fork")
    process = fork.Process(target=answer, args=(asked, answers.fileno()))
    process.start()

    def end() -> None:
        process.kill()
        process.join()

    return _Process(process.join, end)


def _other(asked: str, answers: IO[bytes]) -> _Process:
    with TemporaryFile() as file:
        file.write(asked.encode())
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


def _found(answer: Mapping[str, str | int | None]) -> _ImportedTool:
    if "message" not in answer:
        name = answer["tool"]
        permission = cast(Permission, answer["permission"])
        return _ImportedTool(tool=None if name is None else MadeTool(str(name), permission))
    place = shown_path(Path(str(answer["path"])))
    line = f":{answer['line']}" if answer["line"] else ""
    return _ImportedTool(wrong=f"{place}{line}: {answer['message']}")
