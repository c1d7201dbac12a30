"""Bytes as lines."""

from __future__ import annotations

import asyncio
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.app.lines import MAX_LINE, lines, output_pipe


async def read(chunks: list[bytes]) -> list[str]:
    reader = asyncio.StreamReader()
    for chunk in chunks:
        reader.feed_data(chunk)
    reader.feed_eof()
    return [line async for line in lines(reader)]


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        ([], []),
        ([b"a\nb\n"], ["a", "b"]),
        ([b"a\n\nb"], ["a", "", "b"]),
        ([b"a\r\nb\r\n"], ["a", "b"]),
        ([b"half", b" a line\n"], ["half a line"]),
        ([b"\xff\xfe\n"], ["\ufffd\ufffd"]),
        (["gr\u00fc\u00dfe\n".encode()], ["gr\u00fc\u00dfe"]),
    ],
)
async def test_lines_come_without_their_ends(chunks: list[bytes], expected: list[str]) -> None:
    assert await read(chunks) == expected


async def test_a_line_without_end_is_cut() -> None:
    found = await read([b"x" * (MAX_LINE * 2 + 5)])
    assert [len(line) for line in found] == [MAX_LINE, MAX_LINE, 5]


async def test_a_line_is_handed_out_before_the_next_one_comes() -> None:
    reader = asyncio.StreamReader()
    reader.feed_data(b"first\nsec")
    source = lines(reader)
    assert await anext(source) == "first"
    reader.feed_data(b"ond\n")
    reader.feed_eof()
    assert await anext(source) == "second"


@given(st.lists(st.binary(max_size=30), max_size=10))
def test_nothing_is_lost_however_the_bytes_arrive(chunks: list[bytes]) -> None:
    whole = b"".join(chunks)
    found = asyncio.run(read(chunks))
    expected = whole.split(b"\n")
    if expected[-1] == b"":
        expected.pop()
    assert found == [line.removesuffix(b"\r").decode("utf-8", "replace") for line in expected]


async def test_a_pipe_gives_what_is_written_until_its_last_writer_is_gone() -> None:
    async with output_pipe() as pipe:
        os.write(pipe.fd, b"one\ntwo")
        pipe.handed_over()
        pipe.handed_over()  # once is enough, twice does no harm
        assert [line async for line in lines(pipe.reader)] == ["one", "two"]


async def test_a_pipe_is_closed_at_the_end_even_if_nobody_took_it() -> None:
    async with output_pipe() as pipe:
        fd = pipe.fd
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


async def test_a_pipe_is_closed_although_somebody_else_still_holds_the_other_end() -> None:
    async with output_pipe() as pipe:
        other = os.dup(pipe.fd)
        pipe.handed_over()
    try:
        with pytest.raises(BrokenPipeError):
            os.write(other, b"nobody reads this")
    finally:
        os.close(other)
