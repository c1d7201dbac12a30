"""The same tasks as programs of several frameworks: how long they are, and whether they work."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

from benchmarks.frameworks.scripts import INPUT, PRINTED, script
from hubbub.errors import UserError
from hubbub.testing.model_server import ModelServer

__all__ = ["FRAMEWORKS", "HERE", "TASKS", "installed", "lines", "play", "requirement"]

HERE = Path(__file__).parent
INSTALLED = HERE.parents[1] / "build" / "frameworks"
FRAMEWORKS = {
    "hubbub": "Hubbub",
    "pydantic_ai": "Pydantic AI",
    "openai_agents": "OpenAI Agents SDK",
    "langgraph": "LangGraph",
    "agent_framework": "Agent Framework",
    "crewai": "CrewAI",
}
"""Folders of programs, and how the framework is called."""
TASKS = {
    "ask": "ask an agent from Python",
    "typed": "a typed result",
    "prompt_part": "a part of the prompt that Python computes",
    "retrieval": "answers from a folder of Markdown",
    "approval": "two agents, a tool, a person who approves its call",
    "roles": "router, planner, executor and judge",
}
"""Programs, and what each does."""


def lines(framework: str, task: str) -> int:
    """Lines of a program that are neither empty nor a comment, as ruff formats it."""
    text = (HERE / framework / f"{task}.py").read_text("utf-8")
    stripped = (line.strip() for line in text.splitlines())
    return sum(bool(line) and not line.startswith("#") for line in stripped)


def requirement(framework: str) -> str:
    """The packages of a framework, in the versions with which its programs were tried."""
    return (HERE / framework / "requirements.txt").read_text("utf-8").strip()


async def installed(framework: str) -> Path:
    """A Python that has the framework: each has an environment of its own in `build`, made when it
    is first needed. Raises `UserError` where it cannot be installed."""
    if framework == "hubbub":
        return Path(sys.executable)
    place = INSTALLED / framework
    python = place / "bin" / "python"
    complete = place / "installed"  # an installation that was interrupted is made anew
    if not complete.exists():
        await _run(sys.executable, "-m", "venv", "--clear", str(place))
        wanted = str(HERE / framework / "requirements.txt")
        await _run(str(python), "-m", "pip", "install", "--quiet", "-r", wanted)
        complete.touch()
    return python


async def _run(*command: str) -> None:
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE)
    _, err = await process.communicate()
    if process.returncode:
        raise UserError(f"{' '.join(command)}: {err.decode(errors='replace').strip()}")


async def play(framework: str, task: str, folder: Path) -> None:
    """Run a program with the scripted model; `folder` is its home. Raises `UserError` unless it
    prints what it should."""
    python = await installed(framework)
    async with ModelServer(script(framework, task)) as model:
        environment = {
            **os.environ,
            "HOME": str(folder),
            "OPENAI_API_KEY": "none",
            "OPENAI_BASE_URL": model.base_url,
            "PYTHONPATH": str(HERE / framework / "environment"),
        }
        process = await asyncio.create_subprocess_exec(
            str(python), str(HERE / framework / f"{task}.py"), cwd=HERE, env=environment,
            stdin=PIPE, stdout=PIPE, stderr=PIPE,
        )  # fmt: skip
        out, err = await process.communicate(INPUT.encode())
    printed = [line.strip() for line in out.decode().splitlines()]
    right = any(line.endswith(PRINTED[task]) for line in printed)
    if not right or process.returncode or model.mistakes:
        raise UserError("\n".join([*printed[-20:], err.decode(errors="replace"), *model.mistakes]))
