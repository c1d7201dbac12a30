"""A console without a terminal: lines in, plain lines out. For scripts and tests."""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import Sequence
from datetime import tzinfo
from typing import TextIO

from hubbub.people.chat.console import Status
from hubbub.people.chat.render import plain, render
from hubbub.people.shown import Line

__all__ = ["PipeConsole"]

UNLIMITED = 1_000_000
"""Columns: a script wants whole lines."""


class PipeConsole:
    """Reads a file descriptor (a pipe, a file, a socket) line by line and writes text."""

    patient = True

    def __init__(self, source: int, out: TextIO, zone: tzinfo | None = None):
        self._source, self._out, self._zone = source, out, zone
        self._pending = b""
        self._ended = False
        self._wake = asyncio.Event()

    def start(self, status: Status) -> None:
        """Nothing is shown beside the lines."""

    def refresh(self) -> None:
        """As `start`."""

    async def read(self) -> str | None:
        while b"\n" not in self._pending and not self._ended:
            await self._readable()
            if not self._ended:
                data = os.read(self._source, 65536)
                self._pending += data
                self._ended = not data
        line, _, self._pending = self._pending.partition(b"\n")
        if self._ended and not line and not self._pending:
            return None
        return line.decode(errors="replace")

    def show(self, lines: Sequence[Line]) -> None:
        try:
            for line in lines:
                self._out.write(plain(render(line, self._zone, UNLIMITED)) + "\n")
            self._out.flush()
        except BrokenPipeError:
            # Nobody reads any more (`hubbub chat | head`): as good as the end of the input.
            self._out = io.StringIO()
            self._pending, self._ended = b"", True
            self._wake.set()

    async def _readable(self) -> None:
        """Wait until reading does not block. A regular file never does."""
        loop = asyncio.get_running_loop()
        self._wake.clear()
        try:
            loop.add_reader(self._source, self._wake.set)
        except PermissionError:
            return  # what the selector says of regular files
        try:
            await self._wake.wait()
        finally:
            loop.remove_reader(self._source)
