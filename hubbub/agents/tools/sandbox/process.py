"""The agent's side of the sandbox: starts the process and cleans up after it."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import signal
import sys
import tempfile
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import NotRequired, TypedDict

from pydantic import JsonValue, TypeAdapter, ValidationError

from hubbub.agents.tools.base import CallSite, ToolFailed
from hubbub.config.tooling import SandboxLimits

__all__ = [
    "SandboxRequest",
    "SandboxResponse",
    "Target",
    "layers",
    "remove",
    "run_in_process",
    "target_of",
]


# The JSON messages between an agent and its sandboxed process: one request, one answer.


class SandboxRequest(TypedDict):
    """From the agent to the process."""

    path: list[str]
    """The import path."""
    module: str | None
    """The function's module if it can be imported by name; otherwise `file` is loaded."""
    file: str
    function: str
    arguments: dict[str, JsonValue]
    site: tuple[str, int, int, str]
    """The call's turn, step, index and thread."""
    limits: dict[str, float]
    read: list[str] | None
    """The readable paths; None for all."""
    parent: int
    """The agent's process id. The sandbox dies with the agent."""


class SandboxResponse(TypedDict):
    """From the process to the agent: a result or a failure."""

    layers: list[str]
    """The active protections."""
    result: NotRequired[str]
    error: NotRequired[str]
    message: NotRequired[str]
    retry: NotRequired[bool]
    near: NotRequired[list[str]]


_THREADS = 64
"""Maximum threads, if the system counts them separately for the sandbox."""
_CHILD = Path(__file__).with_name("child.py")
_CHUNK = 64 * 1024
_STDERR_TAIL = 2000
"""Bytes retained from the end of stderr."""

_ANSWER = TypeAdapter(dict[str, JsonValue])


@dataclass(frozen=True, slots=True)
class Target:
    """A function that another process can import."""

    module: str | None
    file: str
    name: str


def target_of(function: Callable[..., object]) -> Target:
    """The function's location. Raises TypeError if another process could not import it."""
    name = function.__qualname__
    try:
        file = inspect.getsourcefile(function)
    except TypeError:
        file = None
    if file is None or not name.isidentifier():
        raise TypeError(f"{name}: a sandboxed tool must be defined at the top level of a file")
    by_name = function.__module__ != "__main__" and not function.__module__.startswith(
        "hubbub_file_"
    )
    return Target(function.__module__ if by_name else None, str(Path(file).resolve()), name)


async def run_in_process(
    target: Target, arguments: Mapping[str, JsonValue], site: CallSite, limits: SandboxLimits
) -> str:
    """Run the function and return its result as text. Cancelling kills the process and its
    children.

    Raises `ToolFailed` if the function raises, or exceeds a limit.
    """
    return _result(*await _run(_request(target, arguments, site, limits), limits), limits)


async def layers() -> list[str]:
    """The protections that are active on this machine."""
    target, limits = Target(__name__, __file__, "do_nothing"), SandboxLimits()
    request = _request(target, {}, CallSite("doctor-m1", 1, 0), limits)
    answer, stderr, code = await _run(request, limits)
    active = _ANSWER.validate_json(answer or b"{}").get("layers")
    if not isinstance(active, list):
        raise _exit_failure(code, stderr, limits)
    return [str(layer) for layer in active]


def do_nothing() -> str:
    return ""


async def _run(request: SandboxRequest, limits: SandboxLimits) -> tuple[bytes, bytes, int]:
    """The answer, the end of stderr and the exit code of a process."""
    folder = tempfile.mkdtemp(prefix="hubbub-")
    try:
        process = await _start(folder)
        try:
            answer, stderr = await _exchange(process, json.dumps(request).encode(), limits)
            code = await process.wait()
        finally:
            await _end(process)
    finally:
        # In a thread, since the folder can be full of files; completed even when cancelled.
        await asyncio.shield(asyncio.get_running_loop().run_in_executor(None, remove, folder))
    return answer, stderr, code


def _request(
    target: Target, arguments: Mapping[str, JsonValue], site: CallSite, limits: SandboxLimits
) -> SandboxRequest:
    return {
        "path": [os.path.abspath(path) for path in sys.path],
        "module": target.module,
        "file": target.file,
        "function": target.name,
        "arguments": dict(arguments),
        "site": (site.turn, site.step, site.index, site.thread_id),
        "limits": {**limits.model_dump(exclude={"read"}), "threads": _THREADS},
        "read": None if limits.read is None else _readable(target, limits.read),
        "parent": os.getpid(),
    }


def _readable(target: Target, paths: Sequence[str]) -> list[str]:
    """The given paths, and those that Python needs to run the function."""
    packages = [path for path in sys.path if path.startswith((sys.prefix, sys.base_prefix))]
    code = Path(target.file)
    if target.module is not None and "." in target.module:
        code = code.parents[target.module.count(".") - 1]  # the package that contains it
    own = [sys.prefix, sys.base_prefix, *packages, str(Path(__file__).parents[3]), str(code)]
    return [os.path.abspath(path) for path in (*own, *_SYSTEM_PATHS, *paths)]


_SYSTEM_PATHS = (
    "/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/localtime", "/dev/null", "/dev/urandom",
)  # fmt: skip


async def _start(folder: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-X", "utf8", str(_CHILD)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=folder,
        env={},
        start_new_session=True,
    )


async def _exchange(
    process: asyncio.subprocess.Process, request: bytes, limits: SandboxLimits
) -> tuple[bytes, bytes]:
    """The process's answer, and the end of its stderr."""
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    async with asyncio.TaskGroup() as group:
        stderr = group.create_task(_read_tail(process.stderr))
        group.create_task(_send_request(process.stdin, request))
        answer = await _read_all(process.stdout, limits.output)
        if len(answer) > limits.output:
            await _end(process)
    return answer, stderr.result()


async def _send_request(stdin: asyncio.StreamWriter, request: bytes) -> None:
    with suppress(ConnectionError):  # it died first; its exit code shows the reason
        stdin.write(request)
        await stdin.drain()
        stdin.close()
        await stdin.wait_closed()


async def _read_all(stream: asyncio.StreamReader, limit: int) -> bytes:
    """Read to the end, or until slightly more than `limit` bytes."""
    data = bytearray()
    while len(data) <= limit:
        chunk = await stream.read(_CHUNK)
        if not chunk:
            break
        data += chunk
    return bytes(data)


async def _read_tail(stream: asyncio.StreamReader) -> bytes:
    tail = b""
    while chunk := await stream.read(_CHUNK):
        tail = (tail + chunk)[-_STDERR_TAIL:]
    return tail


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill the process's whole session, and wait for the process to exit."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


def _result(answer: bytes, stderr: bytes, code: int, limits: SandboxLimits) -> str:
    if len(answer) > limits.output:
        raise ToolFailed(f"its result is over {limits.output} bytes", error="sandbox_limit")
    try:
        response = _ANSWER.validate_json(answer)
    except ValidationError:
        raise _exit_failure(code, stderr, limits) from None
    result, message = response.get("result"), response.get("message")
    if isinstance(result, str):
        return result
    near = response.get("near")
    raise ToolFailed(
        message if isinstance(message, str) else "no answer",
        error=str(response.get("error") or "tool_failed"),
        retry=response.get("retry") is True,
        near=[str(name) for name in near] if isinstance(near, list) else (),
    )


def _exit_failure(code: int, stderr: bytes, limits: SandboxLimits) -> ToolFailed:
    """The failure of a process that exited without an answer."""
    if code == -signal.SIGXCPU:
        message = f"it needed more than {limits.cpu:g} s of processor time"
        return ToolFailed(message, error="sandbox_limit")
    if b"MemoryError" in stderr:
        message = f"it needed more than {limits.memory // 1024**2} MiB of memory"
        return ToolFailed(message, error="sandbox_limit")
    status = f"signal {-code}" if code < 0 else f"exit code {code}"
    last = stderr.decode(errors="replace").strip().splitlines()[-1:]
    return ToolFailed(": ".join([f"its process ended without an answer ({status})", *last]))


def remove(folder: str) -> None:
    """Delete a folder of any depth and with any permissions. It must not be in use.

    Moves deeper folders up, so that depth needs neither stack nor open folders. Leaves what the
    system refuses to delete.
    """
    with suppress(OSError):
        os.chmod(folder, 0o700)
        top = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            _empty(top)
        finally:
            os.close(top)
        os.rmdir(folder)


def _empty(top: int) -> None:
    prefix, numbers = uuid.uuid4().hex, count()
    while entries := _entries(top):
        for name, is_folder in entries:
            if not is_folder:
                os.unlink(name, dir_fd=top)
                continue
            folder = _open(name, top)
            try:
                for inner, is_inner_folder in _entries(folder):
                    if is_inner_folder:
                        os.chmod(inner, 0o700, dir_fd=folder)  # required for moving it
                        moved = f"{prefix}{next(numbers)}"
                        os.rename(inner, moved, src_dir_fd=folder, dst_dir_fd=top)
                    else:
                        os.unlink(inner, dir_fd=folder)
            finally:
                os.close(folder)
            os.rmdir(name, dir_fd=top)


def _open(name: str, within: int) -> int:
    os.chmod(name, 0o700, dir_fd=within)
    return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=within)


def _entries(folder: int) -> list[tuple[str, bool]]:
    """Names, and whether they are folders."""
    with os.scandir(folder) as entries:
        return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
