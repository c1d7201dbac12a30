"""The audit hook of the sandbox: what Python itself refuses."""

from __future__ import annotations

import fcntl
import os
import socket

import pytest

from hubbub.agents.tools.sandbox.jail import _refuse


def test_what_is_forbidden_is_refused_in_words_and_everything_else_passes() -> None:
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
    for event, arguments, what in cases:
        with pytest.raises(PermissionError, match=f"a sandboxed tool may not {what}"):
            _refuse(event, arguments)
    more: list[tuple[str, tuple[object, ...]]] = [
        ("open", ("/tmp/x", "w", 0)),
        ("import", ("json",)),
        ("fcntl.fcntl", (3, fcntl.F_SETFL, 0)),
        ("resource.prlimit", (os.getpid(), 4, (0, 0))),
        ("socket.__new__", (None, socket.AF_UNIX, 1, 0)),  # how asyncio wakes itself
    ]
    for event, arguments in more:
        _refuse(event, arguments)
