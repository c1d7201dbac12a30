"""The restrictions that the sandboxed process puts on itself before it runs the function.

Uses only the standard library, because it runs before anything else is trusted. Layers that the
system does not support are skipped; `enter` returns the active ones.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Mapping, Sequence

from hubbub.agents.tools.sandbox import landlock, seccomp

__all__ = ["enter"]

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38
_AF_UNIX = 1
_NAMING = (8, 10, 15) if sys.platform == "linux" else (6,)
"""F_SETOWN and the like: they name a process that gets signals when a file is ready."""
_FORBIDDEN = {
    "os.exec": "start programs",
    "os.fork": "start processes",
    "os.forkpty": "start processes",
    "os.posix_spawn": "start processes",
    "os.spawn": "start processes",
    "os.system": "start processes",
    "pty.spawn": "start processes",
    "subprocess.Popen": "start processes",
    "os.kill": "signal processes",
    "os.killpg": "signal processes",
    "socket.bind": "use the network",
    "socket.connect": "use the network",
    "socket.getaddrinfo": "use the network",
    "socket.gethostbyaddr": "use the network",
    "socket.gethostbyname": "use the network",
    "socket.getnameinfo": "use the network",
    "socket.sendmsg": "use the network",
    "socket.sendto": "use the network",
}


def enter(limits: Mapping[str, float], parent: int, read: Sequence[str] | None = None) -> list[str]:
    """Drop all permissions that the function must not have; of files, only `read` stays readable,
    unless it is None. Returns the names of the active layers.
    """
    layers = ["limits", "hook"]
    libc = ctypes.CDLL(None, use_errno=True)
    if sys.platform == "linux":
        libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)  # the agent died before that
        if _own_network(libc):
            layers.append("namespace")
    _limit(limits, counted="namespace" in layers)
    if sys.platform == "linux":
        libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if landlock.confine(libc, os.getcwd(), read):
            layers.append("landlock")
        if seccomp.install(libc):
            layers.append("seccomp")
    sys.addaudithook(_refuse)
    return layers


def _own_network(libc: ctypes.CDLL) -> bool:
    """A network namespace without any interface, as a user without rights outside."""
    user, group = os.getuid(), os.getgid()
    if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
        return False
    with contextlib.suppress(OSError):  # it also works as nobody
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")
    return True


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def _limit(limits: Mapping[str, float], *, counted: bool) -> None:
    import resource  # not on every system; without it the import fails and nothing runs

    cpu = max(1, round(limits["cpu"]))
    wanted = [
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_CPU, cpu, cpu + 1),
        (resource.RLIMIT_FSIZE, int(limits["file"]), int(limits["file"])),
        (resource.RLIMIT_NOFILE, int(limits["files"]), int(limits["files"])),
        (resource.RLIMIT_AS, int(limits["memory"]), int(limits["memory"])),
    ]
    if counted:  # elsewhere all processes of the user would count
        wanted.append((resource.RLIMIT_NPROC, int(limits["threads"]), int(limits["threads"])))
    for which, soft, hard in wanted:
        _, most = resource.getrlimit(which)
        if most != resource.RLIM_INFINITY:
            soft, hard = min(soft, most), min(hard, most)
        with contextlib.suppress(OSError, ValueError):  # macOS knows RLIMIT_AS and refuses it
            resource.setrlimit(which, (soft, hard))


def _refuse(event: str, arguments: tuple[object, ...]) -> None:
    what = _FORBIDDEN.get(event)
    if event == "socket.__new__" and len(arguments) > 1 and arguments[1] != _AF_UNIX:
        what = "use the network"  # a pair of local sockets is what asyncio wakes itself with
    if event == "fcntl.fcntl" and arguments[1] in _NAMING:
        what = "signal processes"
    if event == "resource.prlimit" and arguments[0] not in (0, os.getpid()):
        what = "limit other processes"
    if what is not None:
        raise PermissionError(f"a sandboxed tool may not {what}")
