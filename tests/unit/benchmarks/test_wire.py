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


def test_a_server_understands_the_load_program() -> None:
    for size in (0, 1, 125, 126, 302, 65535, 65536):
        server = ServerProtocol(state=OPEN, max_size=None)
        payload = b"x" * size
        server.receive_data(text_frame(payload))
        (frame,) = server.events_received()
        assert frame.opcode is Opcode.TEXT  # type: ignore[union-attr]
        assert frame.data == payload  # type: ignore[union-attr]
    server = ServerProtocol()
    server.receive_data(handshake(4820, "/pair/0/a"))
    (request,) = server.events_received()
    assert server.accept(request).status_code == 101  # type: ignore[arg-type]
    assert request.path == "/pair/0/a"  # type: ignore[union-attr]
    assert header(5) == b"\x81\x85\0\0\0\0", "the mask's key is zero"


def test_pings_are_set_aside_and_what_cannot_be_read_is_an_error() -> None:
    splitter = Splitter()
    data = server_frame(b"one") + server_frame(b"are you there", PING) + server_frame(b"two")
    assert splitter.feed(data) == [b"one", b"two"]
    assert splitter.pings == [b"are you there"]
    with pytest.raises(ConnectionError, match="4002 slow"):
        Splitter().feed(server_frame((4002).to_bytes(2, "big") + b"slow", CLOSE))
    with pytest.raises(ConnectionError, match="opcode 2"):
        Splitter().feed(server_frame(b"binary", 2))
