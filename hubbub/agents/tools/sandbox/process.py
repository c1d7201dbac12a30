"""The agent's side of the sandbox: starts the process, and cleans up after it."""

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


# The messages between an agent and its sandboxed process: one request, one answer, as JSON.


class SandboxRequest(TypedDict):
    """From the agent to the process."""

    path: list[str]
    """The import path."""
    module: str | None
    """The function's module, if it can be imported by name; otherwise `file` is loaded."""
    file: str
    function: str
    arguments: dict[str, JsonValue]
    site: tuple[str, int, int, str]
    """The call's turn, step, index and thread."""
    limits: dict[str, float]
    read: list[str] | None
    """Paths that it may read; None: all."""
    parent: int
    """Process id of the agent: the sandbox dies with it."""


class SandboxResponse(TypedDict):
    """From the process to the agent: a result, or how the call failed."""

    layers: list[str]
    """The protections that are active."""
    result: NotRequired[str]
    error: NotRequired[str]
    message: NotRequired[str]
    retry: NotRequired[bool]
    near: NotRequired[list[str]]


_THREADS = 64
"""Where the system counts them for the sandbox alone."""
_CHILD = Path(__file__).with_name("child.py")
_CHUNK = 64 * 1024
_LAST_WORDS = 2000
"""Bytes of stderr that are kept, from its end."""

_ANSWER = TypeAdapter(dict[str, JsonValue])


@dataclass(frozen=True, slots=True)
class Target:
    """A function that another process can find."""

    module: str | None
    file: str
    name: str


def target_of(function: Callable[..., object]) -> Target:
    """Where the function is defined. Raises TypeError if another process could not find it."""
    name = function.__qualname__
    try:
        file = inspect.getsourcefile(function)
    except TypeError:
        file = None
    if file is None or not name.isidentifier():
        raise TypeError(f"{name}: a sandboxed tool must stand at the top level of a file")
    by_name = function.__module__ != "__main__" and not function.__module__.startswith(
        "hubbub_file_"
    )
    return Target(function.__module__ if by_name else None, str(Path(file).resolve()), name)


async def run_in_process(
    target: Target, arguments: Mapping[str, JsonValue], site: CallSite, limits: SandboxLimits
) -> str:
    """The function's result as text. Cancelling kills the process, and all that it has started.

    Raises `ToolFailed` for what the function raises and when it exceeds a limit.
    """
    return _result(*await _run(_request(target, arguments, site, limits), limits), limits)


async def layers() -> list[str]:
    """The protections that are active on this machine."""
    target, limits = Target(__name__, __file__, "nothing"), SandboxLimits()
    request = _request(target, {}, CallSite("doctor-m1", 1, 0), limits)
    answer, words, code = await _run(request, limits)
    found = _ANSWER.validate_json(answer or b"{}").get("layers")
    if not isinstance(found, list):
        raise _exit_failure(code, words, limits)
    return [str(layer) for layer in found]


def nothing() -> str:
    return ""


async def _run(request: SandboxRequest, limits: SandboxLimits) -> tuple[bytes, bytes, int]:
    """The answer, the last words on stderr and the exit code of a process."""
    folder = tempfile.mkdtemp(prefix="hubbub-")
    try:
        process = await _start(folder)
        try:
            answer, words = await _exchange(process, json.dumps(request).encode(), limits)
            code = await process.wait()
        finally:
            await _end(process)
    finally:
        # In a thread, since the folder may be full of files; it is deleted completely, cancelled or
        # not.
        await asyncio.shield(asyncio.get_running_loop().run_in_executor(None, remove, folder))
    return answer, words, code


def _request(
    target: Target, arguments: Mapping[str, JsonValue], site: CallSite, limits: SandboxLimits
) -> SandboxRequest:
    return {
        "path": [os.path.abspath(place) for place in sys.path],
        "module": target.module,
        "file": target.file,
        "function": target.name,
        "arguments": dict(arguments),
        "site": (site.turn, site.step, site.index, site.thread_id),
        "limits": {**limits.model_dump(exclude={"read"}), "threads": _THREADS},
        "read": None if limits.read is None else _readable(target, limits.read),
        "parent": os.getpid(),
    }


def _readable(target: Target, given: Sequence[str]) -> list[str]:
    """The given paths, and what Python needs to run the function."""
    packages = [place for place in sys.path if place.startswith((sys.prefix, sys.base_prefix))]
    code = Path(target.file)
    if target.module is not None and "." in target.module:
        code = code.parents[target.module.count(".") - 1]  # the package that it is in
    own = [sys.prefix, sys.base_prefix, *packages, str(Path(__file__).parents[3]), str(code)]
    return [os.path.abspath(place) for place in (*own, *_OF_THE_SYSTEM, *given)]


_OF_THE_SYSTEM = (
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
        words = group.create_task(_read_tail(process.stderr))
        group.create_task(_send_request(process.stdin, request))
        answer = await _read_all(process.stdout, limits.output)
        if len(answer) > limits.output:
            await _end(process)
    return answer, words.result()


async def _send_request(stdin: asyncio.StreamWriter, request: bytes) -> None:
    with suppress(ConnectionError):  # it died first; its exit code says why
        stdin.write(request)
        await stdin.drain()
        stdin.close()
        await stdin.wait_closed()


async def _read_all(stream: asyncio.StreamReader, most: int) -> bytes:
    """Everything up to the end, or a little more than `most`."""
    read = bytearray()
    while len(read) <= most:
        chunk = await stream.read(_CHUNK)
        if not chunk:
            break
        read += chunk
    return bytes(read)


async def _read_tail(stream: asyncio.StreamReader) -> bytes:
    kept = b""
    while chunk := await stream.read(_CHUNK):
        kept = (kept + chunk)[-_LAST_WORDS:]
    return kept


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill the process's whole session, and wait until the process is gone."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


def _result(answer: bytes, words: bytes, code: int, limits: SandboxLimits) -> str:
    if len(answer) > limits.output:
        raise ToolFailed(f"its result is over {limits.output} bytes", error="sandbox_limit")
    try:
        response = _ANSWER.validate_json(answer)
    except ValidationError:
        raise _exit_failure(code, words, limits) from None
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


def _exit_failure(code: int, words: bytes, limits: SandboxLimits) -> ToolFailed:
    """Why a process exited without an answer."""
    if code == -signal.SIGXCPU:
        what = f"it needed more than {limits.cpu:g} s of processor time"
        return ToolFailed(what, error="sandbox_limit")
    if b"MemoryError" in words:
        what = f"it needed more than {limits.memory // 1024**2} MiB of memory"
        return ToolFailed(what, error="sandbox_limit")
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    last = words.decode(errors="replace").strip().splitlines()[-1:]
    return ToolFailed(": ".join([f"its process ended without an answer ({how})", *last]))


def remove(folder: str) -> None:
    """Delete a folder, however deep it is and whatever its permissions. Nobody else may be using
    it.

    Needs neither a stack nor open folders for its depth: deeper folders are moved up. What the
    system refuses to delete stays.
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
            place = _opened(name, top)
            try:
                for inner, is_deeper in _entries(place):
                    if is_deeper:
                        os.chmod(inner, 0o700, dir_fd=place)  # required for moving it
                        moved = f"{prefix}{next(numbers)}"
                        os.rename(inner, moved, src_dir_fd=place, dst_dir_fd=top)
                    else:
                        os.unlink(inner, dir_fd=place)
            finally:
                os.close(place)
            os.rmdir(name, dir_fd=top)


def _opened(name: str, within: int) -> int:
    os.chmod(name, 0o700, dir_fd=within)
    return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=within)


def _entries(folder: int) -> list[tuple[str, bool]]:
    """Names, and whether they are folders."""
    with os.scandir(folder) as found:
        return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in found]
