"""Printing never blocks."""

from __future__ import annotations

import io
import os
import re
import select
import threading
from collections.abc import Iterator
from typing import TextIO

import pytest

from hubbub.app.process import Printer

DEADLINE_S = 100.0


class Pipe:
    """A pipe: tests write to `stream` and `read` from the other end."""

    def __init__(self, encoding: str = "utf-8"):
        self.fd, writing = os.pipe()
        self.stream: TextIO = open(writing, "w", encoding=encoding)  # noqa: SIM115  closed below

    def read(self, until: bytes) -> bytes:
        """Read up to and including `until`."""
        data = b""
        while until not in data:
            assert select.select([self.fd], [], [], DEADLINE_S)[0], f"{until!r} never arrived"
            data += os.read(self.fd, 65536)
        return data

    def close(self) -> None:
        """Close the reading end first, so that no thread writes to a descriptor used again."""
        os.close(self.fd)
        for thread in threading.enumerate():
            if thread.name == "printer":
                thread.join(DEADLINE_S)
        self.stream.close()


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    pipe = Pipe()
    yield pipe
    pipe.close()


def gap(count: int) -> str:
    return f"[{count} left out]\n"


def left_out(text: str) -> int:
    """How many writes the gaps in the text stand for."""
    return sum(map(int, re.findall(r"\[(\d+) left out\]", text)))


def test_everything_is_written_in_order_before_the_printer_closes(pipe: Pipe) -> None:
    with Printer(pipe.stream, gap) as printer:
        for n in range(1000):
            assert printer.write(f"{n}\n") == len(f"{n}\n")
    text = pipe.read(b"999\n").decode()
    assert text == "".join(f"{n}\n" for n in range(1000))


@pytest.mark.behaviour("R-6")
def test_a_stalled_reader_does_not_block_and_sees_how_much_was_left_out(pipe: Pipe) -> None:
    line = "x" * 999 + "\n"
    with Printer(pipe.stream, gap, most=20_000) as printer:
        for _ in range(1000):  # far more than a pipe holds
            printer.write(line)
        text = ""
        while text.count(line) + left_out(text) < 1000:
            text += pipe.read(b"\n").decode()
        assert 0 < left_out(text) < 1000
        printer.write("end\n")
        assert pipe.read(b"\n") == b"end\n"


def test_closing_does_not_wait_for_a_stalled_reader(pipe: Pipe) -> None:
    with Printer(pipe.stream, gap) as printer:
        printer.write("x" * 1_000_000)
    assert len(os.read(pipe.fd, 2_000_000)) < 1_000_000
    printer.write("too late")  # does not block either


def test_output_to_a_closed_reader_is_dropped() -> None:
    closed = Pipe()
    os.close(closed.fd)
    with Printer(closed.stream, gap) as printer:
        for _ in range(100):
            printer.write("x" * 100_000)
    closed.stream.close()


def test_characters_outside_the_streams_encoding_become_question_marks() -> None:
    latin = Pipe("latin-1")
    with Printer(latin.stream, gap) as printer:
        printer.write("grüße → 李\n")
    assert latin.read(b"\n").decode("latin-1") == "grüße ? ?\n"
    latin.close()


def test_a_full_non_blocking_stream_is_waited_for(pipe: Pipe) -> None:
    os.set_blocking(pipe.stream.fileno(), False)
    with Printer(pipe.stream, gap) as printer:
        printer.write("x" * 200_000 + "end")
        assert len(pipe.read(b"end")) == 200_003


def test_a_stream_without_a_descriptor_is_written_to() -> None:
    text = io.StringIO()
    with Printer(text, gap) as printer:
        printer.write("grüße\n")
        printer.flush()
    assert text.getvalue() == "grüße\n"
