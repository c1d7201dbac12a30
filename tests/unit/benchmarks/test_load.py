"""The load that benchmarks put on a server, and the errors they detect."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.frames import Opcode
from websockets.protocol import OPEN
from websockets.server import ServerProtocol

from benchmarks.fill import BATCH, PARTICIPANTS, fill
from benchmarks.lanes import Lane, Lost
from benchmarks.load import Pace, measure
from benchmarks.messages import ENVELOPE, Template, broadcast, direct, index_in, ref_in
from benchmarks.servers import start
from benchmarks.sides import relay_fan, relay_pairs
from benchmarks.wire import CLOSE, PING, Splitter, handshake, header, text_frame
from hubbub.network.ports import Store
from hubbub.network.queries import PendingWakes
from hubbub.network.store import open_store
from hubbub.protocol.codec import Decoder, TypedCall
from hubbub.protocol.messages import Message
from hubbub.protocol.operations import BroadcastTextMessage, Input, SendTextMessage
from hubbub.protocol.plain import PlainCall

COUNT = BATCH + 100


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    opened = open_store("sqlite::memory:")
    await opened.open()
    yield opened
    await opened.close()


async def test_a_filled_log_has_valid_dense_messages_for_its_participants(store: Store) -> None:
    await fill(store, COUNT)
    entries = await store.log(0, COUNT, COUNT)
    assert [entry.seq for entry in entries] == list(range(1, COUNT + 1))
    messages = [Message.model_validate_json(entry.body) for entry in entries]
    assert [message.seq for message in messages] == [entry.seq for entry in entries]
    kinds = [message.type for message in messages]
    assert kinds.count("direct") > kinds.count("channel") > 0
    page = await store.thread_page(1, None, COUNT)
    positions = [Message.model_validate_json(body).tseq for body in page]
    assert positions == list(range(1, len(page) + 1)), "dense in each thread"
    assert await store.read(PendingWakes("past1", COUNT)) == []
    received = [await store.events(f"past{n}", 0, 500, 500, False) for n in range(PARTICIPANTS)]
    assert sum(map(len, received)) > 500, "a channel message reaches its members"


class ManualClock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def lane_with(receivers: int = 1, *, answers: bool = True) -> tuple[Lane, list[int], ManualClock]:
    clock = ManualClock()
    lane = Lane(receivers, answers=answers, clock=clock)
    sent: list[int] = []
    lane.transmit = sent.append
    return lane, sent, clock


def test_the_next_message_waits_for_arrival_and_answer() -> None:
    lane, sent, clock = lane_with()
    lane.start(1)
    clock.now = 2.0
    lane.answered(0)
    assert sent == [0]
    clock.now = 5.0
    lane.arrived(0, 0)
    assert (sent, lane.in_flight) == ([0, 1], 1)
    assert (list(lane.answer_times), list(lane.round_trips)) == ([2.0], [5.0])
    lane, sent, _ = lane_with(answers=False)
    lane.start(3)
    assert (sent, lane.in_flight) == ([0, 1, 2], 3)
    lane.stop()
    for index in range(3):
        lane.arrived(0, index)
    assert sent == [0, 1, 2], "after stop, messages in flight complete and no new one is sent"
    lane.verify()


def test_a_lost_repeated_reordered_or_unexpected_message_is_an_error() -> None:
    lane, _, _ = lane_with()
    lane.start(2)
    lane.answered(0)
    lane.answered(1)
    lane.stop()
    with pytest.raises(Lost, match="2 of 2"):
        lane.verify()
    for right, wrong in (([0], 0), ([], 1), ([0], 2)):
        lane, _, _ = lane_with()
        lane.start(4)
        for index in right:
            lane.arrived(0, index)
        with pytest.raises(Lost, match="was due"):
            lane.arrived(0, wrong)
    lane, _, _ = lane_with()
    lane.start(1)
    lane.arrived(0, 0)
    lane.answered(0)
    for wrong in (0, 7):
        with pytest.raises(Lost, match="answered"):
            lane.answered(wrong)
    with pytest.raises(RuntimeError, match="no wire"):
        Lane(1, answers=False, clock=ManualClock()).start(1)


@given(
    receivers=st.integers(0, 4),
    window=st.integers(1, 8),
    choices=st.lists(st.integers(0, 10**6), max_size=60),
)
def test_the_window_stays_full_and_every_message_is_counted(
    receivers: int, window: int, choices: list[int]
) -> None:
    lane, sent, _ = lane_with(receivers)
    lane.start(window)
    arrived = [0] * receivers
    answered = 0
    for choice in choices:
        place = choice % (receivers + 1)
        if place < receivers and arrived[place] < len(sent):
            arrived[place] += 1
            lane.arrived(place, arrived[place] - 1)
        elif place == receivers and answered < len(sent):
            lane.answered(answered)
            answered += 1
        assert lane.in_flight == window
        assert lane.done == min([answered, *arrived])
        assert lane.sent == lane.done + window


def payload(template: Template, index: int) -> bytes:
    server = ServerProtocol(state=OPEN)
    server.receive_data(template.frame(index))
    (frame,) = server.events_received()
    return bytes(frame.data)  # type: ignore[union-attr]


TEMPLATES = [direct("b0", "cafe0123"), direct("b4999", "cafe0123"), broadcast("cafe0123")]


def test_every_message_has_the_same_size_and_its_own_cid() -> None:
    inputs: dict[str, type[Input]] = {
        "send_text_message": SendTextMessage,
        "broadcast_text_message": BroadcastTextMessage,
    }
    decoder = Decoder(inputs, max_bytes=ENVELOPE, max_depth=32)
    for template in TEMPLATES:
        frames = [payload(template, index) for index in (0, 7, 12345678)]
        assert {len(frame) for frame in frames} == {ENVELOPE}
        calls = [decoder.decode(frame) for frame in frames]
        assert len({call.cid for call in calls if isinstance(call, TypedCall | PlainCall)}) == 3


def test_the_index_of_a_message_is_read_from_its_event_and_its_result() -> None:
    call = json.loads(payload(direct("b0", "r"), 42))
    content = {"content": call["args"]["text"]}
    event = json.dumps({"op": "event", "seq": 9, "message": content}).encode()
    assert index_in(event) == 42
    assert ref_in(f'{{"op":"result","ref":"{call["ref"]}","value":{{}}}}'.encode()) == 42
    other = b'{"op":"signal","type":"presence"}'
    assert (index_in(other), ref_in(other)) == (None, None)
    with pytest.raises(ValueError, match="no room"):
        direct("b" * 300, "r")


def server_frame(payload: bytes, opcode: int = 1) -> bytes:
    """An unmasked frame, as servers send them."""
    if len(payload) < 126:
        length = bytes([len(payload)])
    elif len(payload) < 65536:
        length = b"\x7e" + len(payload).to_bytes(2, "big")
    else:
        length = b"\x7f" + len(payload).to_bytes(8, "big")
    return bytes([0x80 | opcode]) + length + payload


def cut(data: bytes, places: list[int]) -> list[bytes]:
    bounds = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[a:b] for a, b in pairwise(bounds)]


sizes = st.one_of(st.integers(0, 200), st.sampled_from([125, 126, 65535, 65536]))


@given(lengths=st.lists(sizes, max_size=5), places=st.lists(st.integers(0, 10**6), max_size=8))
def test_frames_are_reassembled_however_the_network_split_them(
    lengths: list[int], places: list[int]
) -> None:
    payloads = [bytes([n % 256]) * size for n, size in enumerate(lengths)]
    splitter = Splitter()
    pieces = cut(b"".join(map(server_frame, payloads)), places)
    assert [frame for piece in pieces for frame in splitter.feed(piece)] == payloads


def test_a_server_accepts_the_frames_and_the_handshake_of_the_load_program() -> None:
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
    assert header(5) == b"\x81\x85\0\0\0\0", "the masking key is zero"


def test_pings_are_collected_and_a_close_or_unknown_frame_is_an_error() -> None:
    splitter = Splitter()
    data = server_frame(b"one") + server_frame(b"are you there", PING) + server_frame(b"two")
    assert splitter.feed(data) == [b"one", b"two"]
    assert splitter.pings == [b"are you there"]
    with pytest.raises(ConnectionError, match="4002 slow"):
        Splitter().feed(server_frame((4002).to_bytes(2, "big") + b"slow", CLOSE))
    with pytest.raises(ConnectionError, match="opcode 2"):
        Splitter().feed(server_frame(b"binary", 2))


@pytest.mark.slow
async def test_every_message_through_the_relay_arrives_or_the_round_fails() -> None:
    async with start("benchmarks.relay") as server:
        async with relay_pairs(server, 2) as side:
            interval = await measure(side, Pace(window=4, warm_up_s=0.05, measured_s=0.2))
            assert interval.rate > 0
            assert interval.ack_p50_ms is None
            assert all(lane.done == lane.sent for lane in side.lanes)
            assert interval.cpu_us > 0
            assert server.rss_kib() > 0
            assert server.waits()
        async with relay_fan(server, 5) as side:
            interval = await measure(side, Pace(window=2, warm_up_s=0.05, measured_s=0.2))
            assert interval.p99_ms >= interval.p50_ms > 0
        async with relay_pairs(server, 1) as side:
            await server.stop()
            with pytest.raises((ConnectionError, OSError)):
                await measure(side, Pace(window=1, warm_up_s=5.0, measured_s=5.0))


@pytest.mark.slow
async def test_a_server_that_exits_before_it_listens_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="before it listened"):
        async with start("benchmarks.stats"):
            raise AssertionError("it never listens")
