"""Bytes as lines."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.app.lines import MAX_LINE, lines


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
