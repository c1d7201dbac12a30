from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from websockets.frames import Frame, Opcode

from hubbub.network.connection import FrameSplitter

MAX = 70_000
Calls = list[tuple[str, bytes]]


def splitter() -> tuple[FrameSplitter, Calls]:
    calls: Calls = []
    return FrameSplitter(
        text=lambda payload: calls.append(("text", payload)),
        other=lambda data: calls.append(("other", data)),
        not_text=lambda: calls.append(("not text", b"")),
        max_bytes=MAX,
    ), calls


def wire(opcode: Opcode, payload: bytes, *, fin: bool = True, mask: bool = True) -> bytes:
    return Frame(opcode, payload, fin).serialize(mask=mask)


PAYLOADS = st.binary(max_size=300) | st.sampled_from(
    [b"x" * size for size in (125, 126, 127, 65535, 65536)]
)
FRAMES = st.lists(
    st.tuples(
        st.sampled_from([Opcode.TEXT, Opcode.BINARY, Opcode.CONT, Opcode.PING, Opcode.CLOSE]),
        PAYLOADS,
        st.booleans(),
    ),
    max_size=6,
)


@given(FRAMES, st.data())
def test_frames_do_not_depend_on_how_the_stream_is_chunked(
    frames: list[tuple[Opcode, bytes, bool]], data: st.DataObject
) -> None:
    stream, expected = b"", Calls()
    for opcode, payload, fin in frames:
        if opcode in (Opcode.PING, Opcode.CLOSE):
            payload, fin = payload[:125], True
        encoded = wire(opcode, payload, fin=fin)
        stream += encoded
        if opcode is not Opcode.TEXT or not fin:
            expected.append(("other", encoded))
        elif payload.decode(errors="ignore").encode() == payload:
            expected.append(("text", payload))
        else:
            expected.append(("not text", b""))
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=12), label="cuts")
    under_test, calls = splitter()
    start = 0
    for cut in [*sorted(cuts), len(stream)]:
        under_test.feed(stream[start:cut])
        start = cut
    assert calls == expected
    assert not under_test.giving_up


@given(st.integers(1, 200))
def test_a_frame_is_passed_on_only_with_its_last_byte(size: int) -> None:
    under_test, calls = splitter()
    encoded = wire(Opcode.TEXT, b"y" * size)
    for byte in encoded[:-1]:
        under_test.feed(bytes([byte]))
        assert calls == []
    under_test.feed(encoded[-1:])
    assert calls == [("text", b"y" * size)]


def test_the_library_takes_over_from_the_first_oversized_frame() -> None:
    under_test, calls = splitter()
    large, after = wire(Opcode.TEXT, b"z" * (MAX + 1)), wire(Opcode.TEXT, b"after")
    under_test.feed(wire(Opcode.TEXT, b"before") + large[:100])
    under_test.feed(large[100:] + after)
    assert calls[0] == ("text", b"before")
    assert b"".join(data for _, data in calls[1:]) == large + after
    assert under_test.giving_up


def test_the_library_takes_over_from_an_unmasked_or_invalid_frame() -> None:
    invalid_length = b"\x81\xff" + b"\xff" * 8 + b"maskdata"
    for data in (wire(Opcode.TEXT, b"bare", mask=False), invalid_length):
        under_test, calls = splitter()
        under_test.feed(data)
        assert under_test.giving_up
        assert calls == [("other", data)]


@given(st.lists(st.binary(max_size=40), max_size=20))
def test_arbitrary_bytes_never_raise_an_error(chunks: list[bytes]) -> None:
    under_test, _ = splitter()
    for chunk in chunks:
        under_test.feed(chunk)
