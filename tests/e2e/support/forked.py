"""Real processes, forked from one that has imported Hubbub to save the interpreter's start."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Mapping
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from hubbub.cli import main

__all__ = ["DEADLINE_S", "FORKS", "Forked", "hubbub"]

DEADLINE_S = 100.0
"""How long a process can take to start or end before the test fails."""
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.e2e.support.warm"])


class Forked:
    """A process that runs `work(*arguments)` in `folder`, with its output in the file `output`."""

    def __init__(
        self,
        folder: Path,
        output: Path,
        environment: Mapping[str, str],
        work: Callable[..., None],
        *arguments: object,
    ):
        args = (folder, output, dict(environment), work, arguments)
        self._process: ForkServerProcess = FORKS.Process(target=_become, args=args)
        self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def send_signal(self, number: signal.Signals) -> None:
        if self._process.exitcode is None:
            os.kill(self.pid, number)

    async def wait(self) -> int:
        """Waits for it to exit; returns the exit code."""
        await asyncio.to_thread(self._process.join, DEADLINE_S)
        code = self._process.exitcode
        assert code is not None, "the process does not exit"
        return code


def _become(
    folder: Path,
    output: Path,
    environment: Mapping[str, str],
    work: Callable[..., None],
    arguments: tuple[object, ...],
) -> None:
    file = os.open(output, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    work(*arguments)


def hubbub(*arguments: str) -> None:
    """Runs the program as its entry point does."""
    sys.argv = ["hubbub", *arguments]
    main()
