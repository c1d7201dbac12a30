"""The positions of a client's stream, without I/O."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubbub.client.stream import Stream, Verdict
from hubbub.protocol.frames import Cursor, Event, Ready
from hubbub.protocol.messages import Message
from tests.examples import examples
from tests.unit.client.peer import message


def event(seq: int, prev: int) -> Event:
    return Event(seq=seq, prev=prev, tseq=1, message=Message.model_validate(message(seq)))


def ready(cursor: int, *, resumed: bool = True) -> Ready:
    return Ready(participant="ann", kind="human", resumed=resumed, head=99, cursor=cursor)


def test_a_stream_starts_at_its_ready_and_a_gap_does_not_move_it() -> None:
    assert (Stream().cursor, Stream().received, Stream().tellable) == (None, 0, 0)
    assert Stream(Cursor(epoch="e", seq=5)).cursor == Cursor(epoch="e", seq=5)
    for resumed in (True, False):  # the first ready is passed on as it is
        stream = Stream()
        assert stream.begin("e", ready(4, resumed=resumed), "r").resumed is resumed
        assert stream.cursor == Cursor(epoch="e", seq=4, run="r")
    assert stream.receive(event(6, 5)) is Verdict.GAP
    assert stream.received == 4
    assert stream.resume == Cursor(epoch="e", seq=4, run="r")
    assert stream.receive(event(6, 4)) is Verdict.NEW
    assert stream.resume == Cursor(epoch="e", seq=4, received=6, run="r")


def test_after_a_resume_only_events_sent_again_can_be_acknowledged() -> None:
    stream = Stream()
    stream.begin("e", ready(0))
    stream.receive(event(5, 0))
    stream.hand_out(5)
    stream.begin("e", ready(0))
    assert stream.ack(5)
    assert not stream.ack(5)
    assert stream.tellable == 0, "not beyond what the hub sent on this connection"
    assert stream.receive(event(5, 0)) is Verdict.KNOWN
    assert stream.tellable == 5
    assert stream.receive(event(6, 5)) is Verdict.NEW


seqs = st.lists(st.integers(1, 200), unique=True, min_size=1, max_size=40).map(sorted)


@pytest.mark.behaviour("C-2")
@settings(max_examples=examples(50))
@given(seqs, st.data())
def test_every_event_is_new_exactly_once_wherever_connections_break(
    log: list[int], data: st.DataObject
) -> None:
    stream = Stream()
    new: list[int] = []
    cursor = 0
    while not new or new[-1] != log[-1]:
        stream.begin("e", ready(cursor))
        rest = [seq for seq in log if seq > cursor]
        served = data.draw(st.integers(1, len(rest)), label="events until the connection breaks")
        for prev, seq in zip([cursor, *rest], rest[:served], strict=False):
            verdict = stream.receive(event(seq, prev))
            assert verdict is not Verdict.GAP
            if verdict is Verdict.NEW:
                new.append(seq)
                stream.hand_out(seq)
            assert stream.acked <= stream.handed <= stream.received
            assert stream.tellable <= seq
        stream.ack(data.draw(st.sampled_from([0, *new]), label="acknowledged"))
        assert stream.cursor is not None
        cursor = stream.cursor.seq
    assert new == log


@settings(max_examples=examples(50))
@given(seqs, st.data())
def test_a_missing_event_is_a_gap_until_it_arrives(log: list[int], data: st.DataObject) -> None:
    missing = data.draw(st.sampled_from(log))
    stream = Stream()
    stream.begin("e", ready(0))
    verdicts = [
        stream.receive(event(seq, prev))
        for prev, seq in zip([0, *log], log, strict=False)
        if seq != missing
    ]
    after = len([seq for seq in log if seq > missing])
    assert verdicts[len(verdicts) - after :] == [Verdict.GAP] * after
    assert stream.received < missing


@given(seqs, st.lists(st.integers(-5, 250), max_size=30))
def test_the_acknowledged_position_only_grows_and_never_passes_the_consumer(
    log: list[int], acks: list[int]
) -> None:
    stream = Stream()
    stream.begin("e", ready(0))
    for prev, seq in zip([0, *log], log, strict=False):
        stream.receive(event(seq, prev))
    stream.hand_out(log[len(log) // 2])
    for seq in acks:
        before = stream.acked
        moved = stream.ack(seq)
        assert moved == (stream.acked != before)
        assert before <= stream.acked <= stream.handed
