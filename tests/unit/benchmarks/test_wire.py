from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.frames import Opcode
from websockets.protocol import OPEN
from websockets.server import ServerProtocol

from benchmarks.wire import CLOSE, PING, Splitter, handshake, header, text_frame


def server_frame(payload: bytes, opcode: int = 1) -> bytes:
    """As a server sends it: not masked."""
    if len(payload) < 126:
        length = bytes([len(payload)])
    elif len(payload) < 65536:
        length = b"\x7e" + len(payload).to_bytes(2, "big")
    else:
        length = b"\x7f" + len(payload).to_bytes(8, "big")
    return bytes([0x80 | opcode]) + length + payload


def cut(data: bytes, places: list[int]) -> list[bytes]:
    marks = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[a:b] for a, b in pairwise(marks)]


sizes = st.one_of(st.integers(0, 200), st.sampled_from([125, 126, 65535, 65536]))


@given(lengths=st.lists(sizes, max_size=5), places=st.lists(st.integers(0, 10**6), max_size=8))
def test_frames_come_out_whole_however_the_network_cut_them(
    lengths: list[int], places: list[int]
) -> None:
    payloads = [bytes([n % 256]) * size for n, size in enumerate(lengths)]
    splitter = Splitter()
    found: list[bytes] = []
    for piece in cut(b"".join(map(server_frame, payloads)), places):
        found += splitter.feed(piece)
    assert found == payloads


@pytest.mark.parametrize("size", [0, 1, 125, 126, 302, 65535, 65536])
def test_a_server_understands_the_frames_of_the_load_program(size: int) -> None:
    server = ServerProtocol(state=OPEN, max_size=None)
    payload = b"x" * size
    server.receive_data(text_frame(payload))
    (frame,) = server.events_received()
    assert frame.opcode is Opcode.TEXT  # type: ignore[union-attr]
    assert frame.data == payload  # type: ignore[union-attr]


def test_a_server_accepts_the_opening_request() -> None:
    server = ServerProtocol()
    server.receive_data(handshake(4820, "/pair/0/a"))
    (request,) = server.events_received()
    response = server.accept(request)  # type: ignore[arg-type]
    assert response.status_code == 101
    assert request.path == "/pair/0/a"  # type: ignore[union-attr]


def test_pings_are_set_aside_for_an_answer_and_are_no_payloads() -> None:
    splitter = Splitter()
    data = server_frame(b"one") + server_frame(b"are you there", PING) + server_frame(b"two")
    assert splitter.feed(data) == [b"one", b"two"]
    assert splitter.pings == [b"are you there"]


def test_a_close_frame_is_an_error_that_says_why() -> None:
    reason = (4002).to_bytes(2, "big") + b"slow"
    with pytest.raises(ConnectionError, match="4002 slow"):
        Splitter().feed(server_frame(reason, CLOSE))


def test_a_frame_that_the_load_program_cannot_read_is_an_error() -> None:
    with pytest.raises(ConnectionError, match="opcode 2"):
        Splitter().feed(server_frame(b"binary", 2))


def test_the_header_carries_the_mask_key_zero() -> None:
    assert header(5) == b"\x81\x85\0\0\0\0"
