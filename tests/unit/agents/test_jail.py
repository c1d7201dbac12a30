"""The audit hook of the sandbox, with which Python itself refuses."""

from __future__ import annotations

import fcntl
import os
import socket

import pytest

from hubbub.agents.tools.sandbox.jail import _refuse


def test_forbidden_actions_are_refused_by_name_and_others_pass() -> None:
    cases: list[tuple[str, tuple[object, ...], str]] = [
        ("socket.connect", (), "use the network"),
        ("socket.getaddrinfo", ("example.org", 80), "use the network"),
        ("socket.__new__", (None, socket.AF_INET, 1, 0), "use the network"),
        ("socket.__new__", (None, socket.AF_INET6, 2, 0), "use the network"),
        ("subprocess.Popen", ("true",), "start processes"), ("os.fork", (), "start processes"),
        ("os.exec", (), "start programs"), ("os.kill", (1, 9), "signal processes"),
        ("fcntl.fcntl", (3, fcntl.F_SETOWN, 1), "signal processes"),
        ("resource.prlimit", (1, 4, (0, 0)), "limit other processes"),
        ("socket.sendmsg", (), "use the network"),
    ]  # fmt: skip
    for event, arguments, action in cases:
        with pytest.raises(PermissionError, match=f"a sandboxed tool may not {action}"):
            _refuse(event, arguments)
    allowed: list[tuple[str, tuple[object, ...]]] = [
        ("open", ("/tmp/x", "w", 0)),
        ("import", ("json",)),
        ("fcntl.fcntl", (3, fcntl.F_SETFL, 0)),
        ("resource.prlimit", (os.getpid(), 4, (0, 0))),
        ("socket.__new__", (None, socket.AF_UNIX, 1, 0)),  # how asyncio wakes itself
    ]
    for event, arguments in allowed:
        _refuse(event, arguments)
