"""Output is split into lines, and log records go to stderr."""

from __future__ import annotations

import asyncio
import os

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from hubbub.app.process import Printer, configure_logging
from hubbub.app.supervisor import MAX_LINE, lines, output_pipe


async def read(chunks: list[bytes]) -> list[str]:
    reader = asyncio.StreamReader()
    for chunk in chunks:
        reader.feed_data(chunk)
    reader.feed_eof()
    return [line async for line in lines(reader)]


async def test_lines_come_without_line_ends_as_they_arrive_and_limited_in_length() -> None:
    for chunks, expected in (
        ([], []),
        ([b"a\n\nb"], ["a", "", "b"]),
        ([b"a\r\nb\r\n"], ["a", "b"]),
        ([b"half", b" a line\n"], ["half a line"]),
        ([b"\xff\xfe\n"], ["\ufffd\ufffd"]),
        (["gr\u00fc\u00dfe\n".encode()], ["gr\u00fc\u00dfe"]),
    ):
        assert await read(chunks) == expected
    parts = await read([b"x" * (MAX_LINE * 2 + 5)])
    assert [len(part) for part in parts] == [MAX_LINE, MAX_LINE, 5]
    reader = asyncio.StreamReader()
    reader.feed_data(b"first\nsec")
    source = lines(reader)
    assert await anext(source) == "first", "before the second has arrived"
    reader.feed_data(b"ond\n")
    reader.feed_eof()
    assert await anext(source) == "second"


@given(st.lists(st.binary(max_size=30), max_size=10))
def test_lines_do_not_depend_on_how_the_bytes_are_chunked(chunks: list[bytes]) -> None:
    expected = b"".join(chunks).split(b"\n")
    if expected[-1] == b"":
        expected.pop()
    assert asyncio.run(read(chunks)) == [
        line.removesuffix(b"\r").decode("utf-8", "replace") for line in expected
    ]


async def test_an_output_pipe_yields_what_is_written_and_closes_its_ends() -> None:
    async with output_pipe() as pipe:
        os.write(pipe.fd, b"one\ntwo")
        pipe.handed_over()
        pipe.handed_over()  # the second call does nothing
        assert [line async for line in lines(pipe.reader)] == ["one", "two"]
    async with output_pipe() as pipe:
        fd = pipe.fd
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)
    async with output_pipe() as pipe:
        other = os.dup(pipe.fd)
        pipe.handed_over()
    try:
        with pytest.raises(BrokenPipeError):
            os.write(other, b"unread")
    finally:
        os.close(other)


def test_log_records_go_to_stderr_on_one_line_and_info_needs_debug(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure_logging(debug=False)
    log = structlog.get_logger("any")
    log.warning("tool failed", tool="x", text="two\nlines")
    log.info("connection lost", code=4006)
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "warning" in err
    assert "tool='x'" in err
    log.warning("failed", exc_info=ValueError("inside"))
    assert "ValueError: inside" in capsys.readouterr().err
    configure_logging(debug=True)
    structlog.get_logger("any").info("connection lost", code=4006)
    assert "connection lost" in capsys.readouterr().err


@pytest.mark.behaviour("R-6")
def test_logging_to_a_closed_pipe_does_not_raise() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as stream, Printer(stream, str) as printer:
        configure_logging(debug=False, printer=printer)
        for _ in range(10):
            structlog.get_logger("any").warning("tool failed", text="x" * 100_000)
