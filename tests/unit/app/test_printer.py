"""Printing never holds anybody up."""

from __future__ import annotations

import io
import os
import select
import threading
from collections.abc import Iterator
from typing import TextIO

import pytest

from hubbub.app.process import Printer

DEADLINE_S = 100.0


class Pipe:
    """A pipe: `stream` is written to, `read` is the other end."""

    def __init__(self, encoding: str = "utf-8"):
        self.fd, writing = os.pipe()
        self.stream: TextIO = open(writing, "w", encoding=encoding)  # noqa: SIM115  closed below

    def read(self, until: bytes) -> bytes:
        """What comes, up to and with `until`."""
        found = b""
        while until not in found:
            assert select.select([self.fd], [], [], DEADLINE_S)[0], f"{until!r} never came"
            found += os.read(self.fd, 65536)
        return found

    def close(self) -> None:
        """The reader goes away first: a thread that still writes must not meet another file."""
        os.close(self.fd)
        for thread in threading.enumerate():
            if thread.name == "printer":
                thread.join(DEADLINE_S)
        self.stream.close()


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    made.close()


def gap(count: int) -> str:
    return f"[{count} left out]"


def test_all_is_written_in_order_before_the_end(pipe: Pipe) -> None:
    with Printer(pipe.stream, gap) as printer:
        for n in range(1000):
            assert printer.write(f"{n}\n") == len(f"{n}\n")
    text = pipe.read(b"999\n").decode()
    assert text == "".join(f"{n}\n" for n in range(1000))


@pytest.mark.behaviour("R-6")
def test_a_reader_who_does_not_read_holds_up_nobody_and_learns_what_is_missing(pipe: Pipe) -> None:
    line = "x" * 999 + "\n"
    with Printer(pipe.stream, gap, most=20_000) as printer:
        for _ in range(1000):  # far more than a pipe takes
            printer.write(line)
        text = pipe.read(b" left out]").decode()
        while not text.endswith("end\n"):
            printer.write("end\n")
            text += pipe.read(b"end\n").decode()
    shown = text.count("x" * 999)
    left_out = sum(int(part.partition(" left out]")[0]) for part in text.split("[")[1:])
    assert shown + left_out == 1000
    assert 0 < left_out < 1000


def test_the_end_does_not_wait_for_a_reader_who_does_not_read(pipe: Pipe) -> None:
    with Printer(pipe.stream, gap) as printer:
        printer.write("x" * 1_000_000)
    assert len(os.read(pipe.fd, 2_000_000)) < 1_000_000
    printer.write("too late")  # and whoever prints after the end is not held up either


def test_streams_of_all_kinds_are_written_to(pipe: Pipe) -> None:
    gone = Pipe()
    os.close(gone.fd)
    with Printer(gone.stream, gap) as printer:  # who has gone away is told nothing more
        for _ in range(100):
            printer.write("x" * 100_000)
    gone.stream.close()
    narrow = Pipe("latin-1")  # a terminal that knows few characters gets question marks
    with Printer(narrow.stream, gap) as printer:
        printer.write("grüße → 李\n")
    assert narrow.read(b"\n").decode("latin-1") == "grüße ? ?\n"
    narrow.close()
    os.set_blocking(pipe.stream.fileno(), False)  # one that does not block is waited for
    with Printer(pipe.stream, gap) as printer:
        printer.write("x" * 200_000 + "end")
        assert len(pipe.read(b"end")) == 200_003
    text = io.StringIO()  # what is no file
    with Printer(text, gap) as printer:
        printer.write("grüße\n")
        printer.flush()
    assert text.getvalue() == "grüße\n"
