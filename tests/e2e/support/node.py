"""Node, and programs that run in it with the client of `sdk/typescript`.

`python -m tests.e2e.support.node` installs TypeScript and a Node with npm into `.venv`, or reports
in one line what is missing.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path

from tests.e2e.support.forked import DEADLINE_S
from tests.e2e.support.npm import NpmPackages

__all__ = ["SDK", "TYPESCRIPT", "NodeProgram", "node", "running_program"]

SDK = Path(__file__).parents[3] / "sdk" / "typescript"
TYPESCRIPT = NpmPackages("typescript", ("typescript@5.9.3", "@types/node@22.20.5"))


@cache
def node() -> list[str]:
    """The command for a Node with a built-in WebSocket; empty if none is installed."""
    for command in (["node"], ["node", "--experimental-websocket"]):
        if shutil.which("node") is None:
            return []
        probe = subprocess.run(
            [*command, "-e", "process.exit(typeof WebSocket === 'function' ? 0 : 1)"],
            capture_output=True,
            check=False,
        )
        if probe.returncode == 0:
            return command
    return []


class NodeProgram:
    """A program that imports the client as `@hubbub/client`."""

    def __init__(self, process: Process):
        self.process = process

    async def line(self) -> str:
        """The next line it prints, which must come."""
        assert self.process.stdout is not None
        line = await asyncio.wait_for(self.process.stdout.readline(), DEADLINE_S)
        assert line, await self.errors()
        return line.decode().rstrip("\n")

    async def errors(self) -> str:
        """Its stderr, once it has exited."""
        assert self.process.stderr is not None
        return (await asyncio.wait_for(self.process.stderr.read(), DEADLINE_S)).decode()

    async def ended(self) -> int:
        """Waits for it to exit; returns the exit code."""
        return await asyncio.wait_for(self.process.wait(), DEADLINE_S)


@asynccontextmanager
async def running_program(
    folder: Path, text: str, *words: str, environ: Mapping[str, str] | None = None
) -> AsyncIterator[NodeProgram]:
    """A program in JavaScript, killed at the end if it is still running. `environ` replaces the
    environment."""
    modules = folder / "node_modules" / "@hubbub"
    if not modules.exists():
        modules.mkdir(parents=True)
        (modules / "client").symlink_to(SDK)
    file = folder / f"{abs(hash(text))}.mjs"
    file.write_text(text)
    process = await asyncio.create_subprocess_exec(
        *node(), str(file), *words, stdout=PIPE, stderr=PIPE, cwd=folder, env=environ
    )
    try:
        yield NodeProgram(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


if __name__ == "__main__":
    TYPESCRIPT.install()
