"""Child processes that end when their parent does, even if it was killed with SIGKILL.

The parent holds the write end of a pipe and never writes to it; each child reads from the other
end. The kernel closes the write end when the parent ends, for whatever reason.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import threading
from collections.abc import Mapping
from typing import Self

__all__ = [
    "RUN",
    "TOKENS",
    "URL",
    "VARIABLE",
    "Lifeline",
    "agent_tokens",
    "end_with_parent",
    "watch_parent",
]

VARIABLE = "HUBBUB_LIFELINE"
"""The environment variable with the file descriptor for the child to read from."""
_EXIT_CODE = 3
_PR_SET_PDEATHSIG = 1


class Lifeline:
    """The parent's end. Pass `fd` (`pass_fds`) and `environment` to each child."""

    def __enter__(self) -> Self:
        self.fd, self._held = os.pipe()
        return self

    def __exit__(self, *exc: object) -> None:
        os.close(self._held)
        os.close(self.fd)

    @property
    def environment(self) -> dict[str, str]:
        return {VARIABLE: str(self.fd)}


def watch_parent() -> None:
    """In a child, end this process as soon as the parent has ended. Does nothing without a parent.

    A thread waits, so that this works even while the main thread imports or computes.
    """
    value = os.environ.pop(VARIABLE, "")
    if not value.isdecimal():
        return
    fd = int(value)
    os.set_inheritable(fd, False)  # not for processes that the agent starts
    threading.Thread(target=_wait, args=(fd,), name="lifeline", daemon=True).start()


def end_with_parent() -> None:
    """Send this process SIGTERM as soon as the parent has ended, even after an exec. Works only on
    Linux, and does nothing elsewhere.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _wait(fd: int) -> None:
    while os.read(fd, 1):
        pass
    os._exit(_EXIT_CODE)


# Environment variables that the launcher of a network sets for the processes that it starts.


URL = "HUBBUB_URL"
RUN = "HUBBUB_RUN"
TOKENS = "HUBBUB_TOKENS"
"""A JSON object of tokens by agent. Environments are private to a user, command lines are not."""


def agent_tokens(environ: Mapping[str, str]) -> dict[str, str]:
    """The tokens that the launcher passed in the environment; empty without a launcher."""
    text = environ.get(TOKENS)
    if not text:
        return {}
    tokens = json.loads(text)
    return {str(name): str(token) for name, token in tokens.items()}
