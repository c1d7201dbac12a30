"""Children that end when their parent does, even if it was killed with SIGKILL.

The parent holds the writing end of a pipe that nobody writes to; each child reads from the other
end. The kernel closes the writing end whenever the parent is gone, however it went.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Self

__all__ = [
    "RUN",
    "TOKENS",
    "URL",
    "VARIABLE",
    "Lifeline",
    "agent_tokens",
    "end_with_parent",
    "hold_on",
]

VARIABLE = "HUBBUB_LIFELINE"
"""The environment variable that tells a child which descriptor to read from."""
_EXIT_CODE = 3
_PR_SET_PDEATHSIG = 1


class Lifeline:
    """The parent's end. Give `fd` to each child (`pass_fds`) together with `environment`."""

    def __enter__(self) -> Self:
        self.fd, self._held = os.pipe()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._held)
        os.close(self.fd)

    @property
    def environment(self) -> dict[str, str]:
        return {VARIABLE: str(self.fd)}


def hold_on() -> None:
    """In a child: end this process as soon as the parent is gone. Does nothing without a parent.

    A thread waits, so that it also works while the main thread imports or computes.
    """
    value = os.environ.pop(VARIABLE, "")
    if not value.isdecimal():
        return
    fd = int(value)
    os.set_inheritable(fd, False)  # processes that the agent starts are its own business
    threading.Thread(target=_wait, args=(fd,), name="lifeline", daemon=True).start()


def end_with_parent() -> None:
    """End this process, also when it has become another program, with a SIGTERM as soon as the
    parent is gone. Only Linux can do that; elsewhere nothing happens.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _wait(fd: int) -> None:
    while os.read(fd, 1):
        pass
    os._exit(_EXIT_CODE)


# What the launcher of a network tells the processes that it starts, through their environment.


URL = "HUBBUB_URL"
RUN = "HUBBUB_RUN"
TOKENS = "HUBBUB_TOKENS"
"""A JSON object of tokens by agent. Environments are private to a user, command lines are not."""


def agent_tokens(environ: Mapping[str, str]) -> dict[str, str]:
    """What the launcher put into the environment of this process; empty without a launcher."""
    text = environ.get(TOKENS)
    if not text:
        return {}
    found = json.loads(text)
    return {str(name): str(token) for name, token in found.items()}
