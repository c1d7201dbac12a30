"""Functions that try to reach other processes from a sandbox, and one that does ordinary work."""

from __future__ import annotations

import array
import asyncio
import ctypes
import fcntl
import json
import os
import resource
import signal
import socket
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from hubbub import tool

_F_SETSIG, _F_SETOWN_EX, _F_SETLEASE = 10, 15, 1024
_SIOCSPGRP = 0x8902
_PR_SET_PDEATHSIG = 1
_CALLS = {
    "x86_64": {"tgkill": 234, "sendto": 44, "connect": 42, "shmget": 29, "msgget": 68},
    "aarch64": {"tgkill": 131, "sendto": 206, "connect": 203, "shmget": 194, "msgget": 186},
}


def _by_hand(name: str, *arguments: int | bytes | None) -> None:
    """Call the C library, without Python's own checks."""
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments) < 0:
        raise OSError(ctypes.get_errno(), name)


def _by_number(name: str, *arguments: int | bytes) -> None:
    _by_hand("syscall", _CALLS[os.uname().machine][name], *arguments)


def _own(command: int, argument: int | bytes) -> None:
    """Set the process that gets a signal when something arrives in a pipe."""
    reader, _ = os.pipe()
    _by_hand("fcntl", reader, command, argument)


def _pair() -> socket.socket:
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0]


def _name_owner(agent: int) -> None:
    _by_hand("ioctl", _pair().fileno(), _SIOCSPGRP, agent.to_bytes(4, "little"))


def _address(path: str) -> bytes:
    return socket.AF_UNIX.to_bytes(2, "little") + path.encode() + b"\0"


def _send(path: str) -> None:
    address = _address(path)
    _by_number("sendto", _pair().fileno(), b"hi", 2, 0, address, len(address))


def _connect(path: str) -> None:
    address = _address(path)
    _by_number("connect", _pair().fileno(), address, len(address))


def _lease(path: str) -> None:
    with open(path, "rb") as file:
        _by_hand("fcntl", file.fileno(), _F_SETLEASE, fcntl.F_RDLCK)


_ATTEMPTS: dict[str, Callable[[int, str], object]] = {
    "own": lambda agent, _: _own(fcntl.F_SETOWN, agent),
    "own_more": lambda agent, _: _own(_F_SETOWN_EX, array.array("i", [1, agent]).tobytes()),
    "own_socket": lambda agent, _: _name_owner(agent),
    "choose_signal": lambda agent, _: _own(_F_SETSIG, signal.SIGURG),
    "thread_signal": lambda agent, _: _by_number("tgkill", agent, agent, signal.SIGURG),
    "limit": lambda agent, _: _by_hand("prlimit", agent, 4, None, bytes(16)),
    "priority": lambda agent, _: os.setpriority(os.PRIO_PROCESS, agent, 0),
    "processors": lambda agent, _: os.sched_setaffinity(agent, os.sched_getaffinity(agent)),
    "send": lambda _, path: _send(path),
    "connect": lambda _, path: _connect(path),
    "lease": lambda _, path: _lease(path),
    "memory": lambda *_: _by_number("shmget", 0, 4096, 0o1600),
    "queue": lambda *_: _by_number("msgget", 0, 0o1600),
    "outlive": lambda *_: _by_hand("prctl", _PR_SET_PDEATHSIG, 0, 0, 0, 0),
}


@tool(sandbox="process")
def meddle(agent: int, path: str, file: str) -> dict[str, int]:
    """Try all of them. Returns their error numbers from the system."""
    errors = {}
    for name, attempt in _ATTEMPTS.items():
        try:
            attempt(agent, file if name == "lease" else path)
            errors[name] = 0
        except OSError as exc:
            errors[name] = exc.errno or -1
    return errors


async def _wake() -> str:
    """Wake the loop from another thread, which uses a pair of sockets."""
    return await asyncio.to_thread(lambda: "awake")


@tool(sandbox="process")
def work() -> dict[str, object]:
    """Do what ordinary functions do."""
    with closing(sqlite3.connect("own.db")) as db, db:
        db.execute("create table t (n integer)")
        db.executemany("insert into t values (?)", [(n,) for n in range(100)])
        (total,) = db.execute("select sum(n) from t").fetchone()
    with tempfile.NamedTemporaryFile("w+", dir=".") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        json.dump([1, 2], file)
        file.flush()
        written = Path(file.name).read_text()
    caught: list[int] = []
    signal.signal(signal.SIGUSR1, lambda number, _: caught.append(number))
    signal.raise_signal(signal.SIGUSR1)
    signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)
    time.sleep(0.001)
    one, other = socket.socketpair()
    one.send(b"across")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    return {
        "total": total,
        "written": written,
        "caught": len(caught),
        "loop": asyncio.run(_wake()),
        "across": other.recv(10).decode(),
        "flags": fcntl.fcntl(one, fcntl.F_GETFL) & os.O_NONBLOCK,
    }


@tool(sandbox="process")
def dig(depth: int) -> str:
    """Make a folder in a folder in a folder."""
    top = os.getcwd()
    for _ in range(depth):
        os.mkdir("d")
        os.chdir("d")
    Path("bottom").touch()
    return top


@tool(sandbox="process")
def lock_up() -> str:
    """Make an unreadable folder with a file in it."""
    top = os.getcwd()
    Path("shut/inner").mkdir(parents=True)
    Path("shut/inner/file").write_text("x")
    Path("link").symlink_to("/")
    os.chmod("shut/inner", 0)
    os.chmod("shut", 0)
    os.chmod(".", 0)
    return top
