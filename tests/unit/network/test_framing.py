from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from websockets.frames import Frame, Opcode

from hubbub.network.connection import FrameSplitter

MAX = 70_000
Seen = list[tuple[str, bytes]]


def splitter() -> tuple[FrameSplitter, Seen]:
    seen: Seen = []

    def text(payload: bytes) -> None:
        seen.append(("text", payload))

    def other(data: bytes) -> None:
        seen.append(("other", data))

    def not_text() -> None:
        seen.append(("not text", b""))

    return FrameSplitter(text, other, not_text, MAX), seen


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
def test_however_the_stream_is_cut_the_same_frames_come_out(
    frames: list[tuple[Opcode, bytes, bool]], data: st.DataObject
) -> None:
    stream, expected = b"", Seen()
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
    under_test, seen = splitter()
    start = 0
    for cut in [*sorted(cuts), len(stream)]:
        under_test.feed(stream[start:cut])
        start = cut
    assert seen == expected
    assert not under_test.giving_up


@given(st.integers(1, 200))
def test_byte_by_byte_nothing_is_handed_over_too_early(size: int) -> None:
    under_test, seen = splitter()
    encoded = wire(Opcode.TEXT, b"y" * size)
    for byte in encoded[:-1]:
        under_test.feed(bytes([byte]))
        assert seen == []
    under_test.feed(encoded[-1:])
    assert seen == [("text", b"y" * size)]


def test_from_a_frame_that_is_too_large_on_the_library_reads_by_itself() -> None:
    under_test, seen = splitter()
    large, after = wire(Opcode.TEXT, b"z" * (MAX + 1)), wire(Opcode.TEXT, b"after")
    under_test.feed(wire(Opcode.TEXT, b"before") + large[:100])
    under_test.feed(large[100:] + after)
    assert seen[0] == ("text", b"before")
    assert b"".join(data for _, data in seen[1:]) == large + after
    assert under_test.giving_up


def test_from_a_frame_without_a_mask_on_the_library_reads_by_itself() -> None:
    under_test, seen = splitter()
    under_test.feed(wire(Opcode.TEXT, b"bare", mask=False))
    assert under_test.giving_up
    assert seen == [("other", wire(Opcode.TEXT, b"bare", mask=False))]


def test_a_length_that_lies_is_left_to_the_library() -> None:
    under_test, seen = splitter()
    under_test.feed(b"\x81\xff" + b"\xff" * 8 + b"maskdata")
    assert under_test.giving_up
    assert seen == [("other", b"\x81\xff" + b"\xff" * 8 + b"maskdata")]


@given(st.lists(st.binary(max_size=40), max_size=20))
def test_any_bytes_are_kept_or_handed_on_and_never_an_error(chunks: list[bytes]) -> None:
    under_test, _seen = splitter()
    for chunk in chunks:
        under_test.feed(chunk)
