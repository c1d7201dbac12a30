"""The command `hubbub`. What a command needs is imported when it runs, so that help is quick."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """The entry point of the program."""
    from hubbub.cli.app import run

    sys.exit(run(sys.argv[1:]))
