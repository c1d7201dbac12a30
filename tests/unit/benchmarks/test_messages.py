from __future__ import annotations

import json

import pytest
from websockets.protocol import OPEN
from websockets.server import ServerProtocol

from benchmarks.messages import ENVELOPE, Template, broadcast, direct, index_in, ref_in
from hubbub.protocol.codec import Decoder, TypedCall
from hubbub.protocol.operations import BroadcastTextMessage, Input, SendTextMessage
from hubbub.protocol.plain import PlainCall


def payload(template: Template, index: int) -> bytes:
    server = ServerProtocol(state=OPEN)
    server.receive_data(template.frame(index))
    (frame,) = server.events_received()
    return bytes(frame.data)  # type: ignore[union-attr]


TEMPLATES = [direct("b0", "cafe0123"), direct("b4999", "cafe0123"), broadcast("cafe0123")]


def test_every_message_has_the_same_size_and_is_a_call_with_a_cid_of_its_own() -> None:
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


def test_the_number_is_found_in_a_message_and_in_the_answer_to_its_call() -> None:
    call = json.loads(payload(direct("b0", "r"), 42))
    content = {"content": call["args"]["text"]}
    event = json.dumps({"op": "event", "seq": 9, "message": content}).encode()
    assert index_in(event) == 42
    assert ref_in(f'{{"op":"result","ref":"{call["ref"]}","value":{{}}}}'.encode()) == 42
    other = b'{"op":"signal","type":"presence"}'
    assert (index_in(other), ref_in(other)) == (None, None)
    with pytest.raises(ValueError, match="no room"):
        direct("b" * 300, "r")
