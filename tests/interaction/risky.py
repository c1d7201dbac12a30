"""Functions that try what a sandbox must prevent, in a module that another process can import."""

from __future__ import annotations

import asyncio
import ctypes
import os
import socket
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel

from hubbub import ToolFailed, tool
from hubbub.agents.tools.runtime_arguments import CancelToken, IdempotencyKey
from hubbub.config.tooling import SandboxLimits

SMALL = SandboxLimits(file=100_000, files=16, output=10_000)


class Point(BaseModel):
    x: int
    y: int = 0


@tool(sandbox="process", idempotent=True)
def mirror(
    point: Point, key: IdempotencyKey, times: Annotated[int, "how often"] = 1
) -> list[Point]:
    """Mirror a point."""
    assert key
    return [Point(x=-point.x, y=point.y)] * times


@tool(sandbox="process")
async def later(text: str) -> str:
    """Return the text a little later."""
    await asyncio.sleep(0)
    return text


def plain(word: str) -> str:
    """Repeat a word."""
    return word * 2


@tool(sandbox="process")
def sell(item: str) -> str:
    """Sell an item."""
    raise ToolFailed(f"no {item}", error="sold_out", retry=True, near=["tea"])


@tool(sandbox="process")
def broken() -> str:
    """Divide by zero."""
    return str(1 // 0)


@tool(sandbox="process")
def leave(code: int) -> str:
    """Leave the process at once."""
    os._exit(code)


@tool(sandbox="process")
def quit_it() -> str:
    """Leave the process the usual way."""
    sys.exit("bye")


@tool(sandbox=SandboxLimits(memory=400 * 1024 * 1024))
def eat_memory() -> str:
    """Eat memory."""
    return str(len(bytearray(1024**3)))


@tool(sandbox="process")
def eat_memory_in_pieces() -> str:
    """Eat memory a little at a time."""
    blocks: list[object] = []
    while True:
        try:
            blocks.append(bytearray(1024**2))
        except MemoryError:
            return f"{len(blocks)} MiB"


@tool(sandbox=SandboxLimits(cpu=1))
def burn() -> str:
    """Burn processor time."""
    while True:
        pass


@tool(sandbox=SMALL)
def write_much() -> str:
    """Write a large file."""
    return str(Path("large").write_bytes(b"x" * 200_000))


@tool(sandbox=SMALL)
def open_many() -> str:
    """Open many files."""
    return str(len([os.dup(0) for _ in range(1000)]))


@tool(sandbox=SMALL)
def answer_much() -> str:
    """Answer at length."""
    return "x" * 20_000


@tool(sandbox=SMALL)
def print_much() -> str:
    """Print at length."""
    for _ in range(1000):
        print("x" * 1000)
        print("y" * 1000, file=sys.stderr)
    return "printed"


@tool(sandbox="process")
def where() -> dict[str, object]:
    """Describe the process and its folder."""
    Path("mine.txt").write_text("mine")
    return {
        "folder": str(Path.cwd()),
        "files": sorted(os.listdir()),
        "environment": sorted(os.environ),
        "pid": os.getpid(),
        "isolated": sys.flags.isolated,
        "session": os.getsid(0) == os.getpid(),
    }


@tool(sandbox="process")
def dial(port: int) -> str:
    """Connect to a port of this machine."""
    with socket.create_connection(("127.0.0.1", port), 5):
        return "connected"


@tool(sandbox="process")
def dial_by_hand(port: int) -> list[int]:
    """Connect without Python's socket module: socket(2), through the C library."""
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.socket(socket.AF_INET, socket.SOCK_STREAM, 0)
    if descriptor < 0:
        return [descriptor, ctypes.get_errno()]
    address = socket.AF_INET.to_bytes(2, sys.byteorder) + port.to_bytes(2) + bytes([127, 0, 0, 1])
    return [libc.connect(descriptor, address + bytes(8), 16), ctypes.get_errno()]


@tool(sandbox="process")
def fetch(port: int) -> str:
    """Fetch a page of this machine."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5) as answer:
        return str(answer.status)


@tool(sandbox="process")
def bomb() -> str:
    """Fork without end."""
    while True:
        os.fork()


@tool(sandbox="process")
def bomb_by_hand() -> list[int]:
    """Fork through the C library."""
    libc = ctypes.CDLL(None, use_errno=True)
    return [libc.fork(), ctypes.get_errno()]


@tool(sandbox="process")
def run_program() -> str:
    """Run a program."""
    return str(subprocess.run(["true"], check=True).returncode)


@tool(sandbox="process")
def kill(pid: int) -> str:
    """Kill a process."""
    os.kill(pid, 9)
    return "killed"


@tool(sandbox="process")
def kill_by_hand(pid: int) -> list[int]:
    """Kill a process through the C library."""
    libc = ctypes.CDLL(None, use_errno=True)
    return [libc.kill(pid, 9), ctypes.get_errno()]


@tool(sandbox="process")
def use_threads() -> int:
    """Use threads."""
    done: list[int] = []
    threads = [threading.Thread(target=done.append, args=(n,)) for n in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done)


def read(path: str) -> str:
    """Read a file, or list a folder."""
    return str(os.listdir(path)) if Path(path).is_dir() else Path(path).read_text()


@tool(sandbox="process")
def overwrite(path: str) -> str:
    """Overwrite a file."""
    Path(path).write_text("mine")
    return "overwritten"


@tool(sandbox="process")
def remove(path: str) -> str:
    """Remove a file."""
    Path(path).unlink()
    return "removed"


@tool(sandbox="process")
def use_folder() -> list[str]:
    """Make, rename and remove files in the current folder."""
    Path("a").mkdir()
    Path("a/b").write_text("1")
    Path("a/b").rename("c")
    Path("a").rmdir()
    Path(os.devnull).write_text("away")
    return os.listdir()


@tool(sandbox="process")
def hang() -> str:
    """Hang."""
    threading.Event().wait()
    return "never"


def wants_token(stop: CancelToken) -> str:
    """Cannot run in a sandbox."""
    return str(stop.cancelled)
