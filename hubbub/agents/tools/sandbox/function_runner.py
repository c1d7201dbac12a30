"""Runs the function inside the sandboxed process. Request and answer are plain JSON."""

from __future__ import annotations

import asyncio
import errno
import importlib
import inspect
import linecache
from pathlib import Path

from hubbub.agents.tools.base import CallSite, ToolFailed
from hubbub.agents.tools.function import as_text, as_tool
from hubbub.agents.tools.runtime_arguments import CancelToken
from hubbub.agents.tools.sandbox import jail
from hubbub.agents.tools.sandbox.process import SandboxRequest, SandboxResponse
from hubbub.loading import load_module
from hubbub.user_code import describe_error

__all__ = ["answer"]


def answer(request: SandboxRequest) -> SandboxResponse:
    """Set up the jail, then run the requested function."""
    layers = jail.enter(request["limits"], request["parent"], request["read"])
    linecache.clearcache()
    if request["read"] is not None and "landlock" not in layers:
        problem = "this machine cannot enforce the sandbox's `read`, because it has no Landlock"
        message = f"{problem}; remove `read`"
        return {"layers": layers, "error": "sandbox_limit", "message": message}
    try:
        return {"layers": layers, "result": _run(request)}
    except ToolFailed as exc:
        return {
            "layers": layers,
            "error": exc.error,
            "message": exc.message,
            "retry": exc.retry,
            "near": list(exc.near),
        }
    except MemoryError:
        size = request["limits"]["memory"] / 1024**2
        return _limit_exceeded(layers, f"it needed more than {size:.0f} MiB of memory")
    except BaseException as exc:  # noqa: BLE001 - reports whatever the tool raises
        if isinstance(exc, OSError) and exc.errno == errno.EFBIG:
            return _limit_exceeded(
                layers, f"it wrote a file of more than {request['limits']['file']:.0f} B"
            )
        return {"layers": layers, "error": "tool_failed", "message": describe_error(exc)}


def _limit_exceeded(layers: list[str], message: str) -> SandboxResponse:
    return {"layers": layers, "error": "sandbox_limit", "message": message}


def _run(request: SandboxRequest) -> str:
    name = request["module"]
    module = importlib.import_module(name) if name else load_module(Path(request["file"]))
    tool = as_tool(getattr(module, request["function"]))
    arguments = tool.bind(request["arguments"], CallSite(*request["site"]), CancelToken())
    result = tool(**arguments)
    if inspect.iscoroutine(result):
        result = asyncio.run(result)
    return as_text(result)
