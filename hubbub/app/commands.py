"""Commands of a running network about itself, each in a process of its own."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE
from contextlib import suppress
from pathlib import Path

from hubbub.errors import OperationError
from hubbub.protocol.agents import Branch, Branched
from hubbub.protocol.codes import ErrorCode

__all__ = ["Commands"]

WITHIN_S = 660.0
"""Seconds: a branch ends itself before."""


class Commands:
    """Runs the program beside the hub at `url`, with the rights of the operator."""

    def __init__(self, config: Path, url: str, token: str):
        self._config = config
        self._environment = {**os.environ, "HUBBUB_ADDRESS": url, "HUBBUB_TOKEN": token}
        self._environment.pop("HUBBUB_AS", None)

    async def branch(self, args: Branch) -> Branched:
        options = [
            f"--with={each.agent}.{key}={value}"
            for each in args.changes
            for key, value in (("instruction", each.instruction), ("model", each.model))
            if value is not None
        ]
        options += [f"--result={each.tool}={each.text}" for each in args.results]
        words = ["branch", "--json", "--config", str(self._config), *options, "--", args.message]
        return Branched.model_validate_json(await self._run(*words))

    async def case(self, message: str) -> str:
        return await self._run("record", "--case", "-", "--", message)

    async def _run(self, *words: str) -> str:
        """What the command prints. Raises `OperationError` with what it says in place of that."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "hubbub", *words,
            stdin=DEVNULL, stdout=PIPE, stderr=PIPE, env=self._environment,
        )  # fmt: skip
        try:
            async with asyncio.timeout(WITHIN_S):
                out, problems = await process.communicate()
        except TimeoutError:
            text = f"it has taken more than {WITHIN_S:g} s"
            raise OperationError(ErrorCode.NOT_TRIED, text) from None
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        if not out:
            said = problems.decode(errors="replace").strip().removeprefix("hubbub: ")
            raise OperationError(ErrorCode.NOT_TRIED, said or f"exit code {process.returncode}")
        return out.decode()
