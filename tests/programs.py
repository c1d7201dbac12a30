"""Programs of the documentation, run in this process in a folder, with a model."""

from __future__ import annotations

import asyncio
import io
import runpy
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from hubbub.testing.model_server import ModelServer

__all__ = ["printed"]


async def printed(
    program: Path, model: ModelServer, *, folder: Path | None = None, typed: str = ""
) -> list[str]:
    """The lines that a program prints in `folder` (by default its own), with `typed` as its input.
    It runs in a thread, since it starts its own event loop."""
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out):
        patch.chdir(folder or program.parent)
        patch.setenv("OPENAI_BASE_URL", model.base_url)
        patch.setenv("OPENAI_API_KEY", "none")
        patch.setattr("sys.stdin", io.StringIO(typed))
        await asyncio.to_thread(runpy.run_path, str(program), run_name="__main__")
    assert model.mistakes == []
    return out.getvalue().splitlines()
