"""The command `hubbub`.

`app` has all commands in one table and says what has failed; `operations` makes commands of
operations; the other modules are what is written by hand: a flow of several calls, or nothing that
a hub is asked. `connection` is the way to a network, `output` the way to the screen. What a
command needs is imported when it runs, so that help is quick.
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
    """While it lasts, Ctrl-C ends the process without a word: nothing is under way yet."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield  # ignored, as by a shell for what it runs in the background
        return
    signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    yield
    signal.signal(signal.SIGINT, signal.default_int_handler)
