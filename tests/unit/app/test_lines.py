"""Bytes as lines, and where log records go."""

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


async def test_lines_come_without_their_ends_one_by_one_and_not_too_long() -> None:
    for chunks, expected in (
        ([], []),
        ([b"a\n\nb"], ["a", "", "b"]),
        ([b"a\r\nb\r\n"], ["a", "b"]),
        ([b"half", b" a line\n"], ["half a line"]),
        ([b"\xff\xfe\n"], ["\ufffd\ufffd"]),
        (["gr\u00fc\u00dfe\n".encode()], ["gr\u00fc\u00dfe"]),
    ):
        assert await read(chunks) == expected
    found = await read([b"x" * (MAX_LINE * 2 + 5)])
    assert [len(line) for line in found] == [MAX_LINE, MAX_LINE, 5]
    reader = asyncio.StreamReader()
    reader.feed_data(b"first\nsec")
    source = lines(reader)
    assert await anext(source) == "first", "before the next one comes"
    reader.feed_data(b"ond\n")
    reader.feed_eof()
    assert await anext(source) == "second"


@given(st.lists(st.binary(max_size=30), max_size=10))
def test_nothing_is_lost_however_the_bytes_arrive(chunks: list[bytes]) -> None:
    found = asyncio.run(read(chunks))
    expected = b"".join(chunks).split(b"\n")
    if expected[-1] == b"":
        expected.pop()
    assert found == [line.removesuffix(b"\r").decode("utf-8", "replace") for line in expected]


async def test_a_pipe_gives_what_is_written_and_is_closed_whoever_holds_it() -> None:
    async with output_pipe() as pipe:
        os.write(pipe.fd, b"one\ntwo")
        pipe.handed_over()
        pipe.handed_over()  # once is enough, twice does no harm
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
            os.write(other, b"nobody reads this")
    finally:
        os.close(other)


def test_records_go_to_stderr_one_line_each_and_details_are_for_debugging(
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
def test_a_record_that_nobody_can_read_fails_nobody() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as stream, Printer(stream, str) as printer:
        configure_logging(debug=False, printer=printer)
        for _ in range(10):
            structlog.get_logger("any").warning("tool failed", text="x" * 100_000)
