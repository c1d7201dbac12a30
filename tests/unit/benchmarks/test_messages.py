from __future__ import annotations

import json

import pytest
from websockets.protocol import OPEN
from websockets.server import ServerProtocol

from benchmarks.messages import ENVELOPE, Template, broadcast, direct, index_in, ref_in
from hubbub.protocol.codec import Decoder, TypedCall
from hubbub.protocol.operations import BroadcastTextMessage, Input, SendTextMessage


def payload(template: Template, index: int) -> bytes:
    server = ServerProtocol(state=OPEN)
    server.receive_data(template.frame(index))
    (frame,) = server.events_received()
    return bytes(frame.data)  # type: ignore[union-attr]


TEMPLATES = [direct("b0", "cafe0123"), direct("b4999", "cafe0123"), broadcast("cafe0123")]


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("index", [0, 7, 12345678])
def test_every_message_has_the_same_size(template: Template, index: int) -> None:
    assert len(payload(template, index)) == ENVELOPE


@pytest.mark.parametrize("template", TEMPLATES)
def test_the_hub_reads_the_messages_as_calls_with_a_cid_of_their_own(template: Template) -> None:
    inputs: dict[str, type[Input]] = {
        "send_text_message": SendTextMessage,
        "broadcast_text_message": BroadcastTextMessage,
    }
    decoder = Decoder(inputs, max_bytes=ENVELOPE, max_depth=32)
    calls = [decoder.decode(payload(template, index)) for index in (1, 2)]
    cids = [call.cid for call in calls if isinstance(call, TypedCall)]
    assert len(set(cids)) == 2


def test_the_number_is_found_in_a_message_however_it_is_wrapped() -> None:
    text = json.loads(payload(direct("b0", "r"), 42))["args"]["text"]
    event = json.dumps({"op": "event", "seq": 9, "message": {"content": text}}).encode()
    assert index_in(event) == 42


def test_the_number_is_found_in_the_answer_to_a_call() -> None:
    ref = json.loads(payload(direct("b0", "r"), 42))["ref"]
    assert ref_in(f'{{"op":"result","ref":"{ref}","value":{{}}}}'.encode()) == 42


def test_other_frames_have_no_number() -> None:
    frame = b'{"op":"signal","type":"presence"}'
    assert index_in(frame) is None
    assert ref_in(frame) is None


def test_an_envelope_without_room_for_a_text_is_refused() -> None:
    with pytest.raises(ValueError, match="no room"):
        direct("b" * 300, "r")
