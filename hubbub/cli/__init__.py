"""The command `hubbub`.

`app` has all commands in one table and reports failures; `operations` generates commands from
operations; the other modules hold handwritten commands, which make several calls or none.
`connection` joins a network, `output` prints. A command imports its dependencies when it runs, so
help is fast.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["main"]

INTERRUPTED = 130


def main() -> None:
    """The entry point of the program."""
    with _quiet():
        from hubbub.app.process import loading

        with loading():
            from hubbub.cli.app import run
    code = run(sys.argv[1:])
    with _quiet():
        sys.exit(code)


@contextmanager
def _quiet() -> Iterator[None]:
    """Exit silently on Ctrl-C inside this block: no work has started yet."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield  # ignored, as a shell does for background jobs
        return
    signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    yield
    signal.signal(signal.SIGINT, signal.default_int_handler)
