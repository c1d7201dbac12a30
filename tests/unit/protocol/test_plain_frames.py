"""Frames decoded without a model equal those decoded with one."""

from __future__ import annotations

import json

from hypothesis import example, given
from hypothesis import strategies as st

from hubbub.network.calls import call_digest
from hubbub.protocol.codec import Decoder
from hubbub.protocol.operations import (
    BroadcastTextMessage,
    Input,
    PostToChannel,
    SendTextMessage,
    Speech,
)
from hubbub.protocol.plain import PlainAck, PlainCall, PlainReader
from tests.unit.protocol.drafts import hostile_text, json_values

INPUTS: dict[str, type[Input]] = {
    "send_text_message": SendTextMessage,
    "broadcast_text_message": BroadcastTextMessage,
    "post_to_channel": PostToChannel,
}
PLAIN = PlainReader(INPUTS)
MODELS = Decoder({**INPUTS}, max_bytes=1 << 20, max_depth=32)

words = st.one_of(hostile_text(), st.sampled_from(["ann", "m42", "a:b", "", "x" * 65, "x" * 1025]))
values = st.one_of(words, json_values())
arguments = st.dictionaries(
    st.sampled_from(["to", "text", "cause", "channel", "mentions", "untrusted", "tex"]), values
)
frames = st.one_of(
    st.fixed_dictionaries({"op": st.just("ack"), "seq": st.one_of(st.integers(), values)}),
    st.fixed_dictionaries(
        {
            "op": st.just("call"),
            "ref": words,
            "name": st.sampled_from([*INPUTS, "reply"]),
            "args": st.one_of(
                arguments,
                st.fixed_dictionaries({"to": words, "text": words}, optional={"cause": words}),
                st.fixed_dictionaries({"channel": words, "text": words}),
                st.fixed_dictionaries({"text": words}, optional={"cause": words}),
            ),
        },
        optional={"cid": words, "extra": values},
    ),
)


@st.composite
def encoded_frames(draw: st.DrawFn) -> bytes:
    """A frame with any spacing, with or without escapes, duplicate keys or a missing end."""
    frame = draw(frames)
    escapes, indent = draw(st.booleans()), draw(st.sampled_from([None, 1]))
    text = json.dumps(frame, ensure_ascii=escapes, indent=indent)
    if draw(st.integers(0, 3)) == 0:
        key = draw(st.sampled_from(['"text"', '"op"', '"seq"', '"to"']))
        twice = f"{key}:{json.dumps(draw(words), ensure_ascii=escapes)},{key}"
        text = text.replace(key, twice, 1)
    data = text.encode(errors="surrogatepass")
    return data[: draw(st.integers(0, len(data)))] if draw(st.integers(0, 9)) == 0 else data


@given(encoded_frames())
@example(b'{"op":"ack","seq":1,"seq":2}')
@example(b'{"op":"ack","seq":1.0}')
@example(
    b'{"op":"call","ref":"r","name":"send_text_message","args":{"to":"b","text":"x",'
    b'"text":"\\u003a"}}'
)
@example(
    b'{"op":"call","ref":"r","name":"send_text_message","args":{"to":"b","text":"\\u003a",'
    b'"text":"x"}}'
)
@example(
    b'{"op":"call","ref":"r","name":"send_text_message","args":{"to":"b","text":"\xed\xa0\x80"}}'
)
@example(b'{"op":"call","ref":"r","name":"broadcast_text_message","args":{"text":"\x00"}}')
def test_frames_decoded_without_a_model_equal_those_of_the_models(data: bytes) -> None:
    plain = PLAIN.read(data)
    if plain is None:
        return
    frame = MODELS._decode(data)
    assert frame.op == plain.op
    if isinstance(plain, PlainAck):
        assert frame.op == "ack"
        assert frame.seq == plain.seq
        return
    assert frame.op == "call"
    assert (frame.ref, frame.name, frame.cid) == (plain.ref, plain.name, plain.cid)
    for field in {*Speech.model_fields, *INPUTS[plain.name].model_fields}:
        assert getattr(plain.args, field) == getattr(frame.args, field)
    assert call_digest(plain) == call_digest(frame)


@given(text=hostile_text().filter(bool), cause=st.sampled_from([None, "m42", "ann-m42"]))
def test_frames_with_any_plain_text_are_decoded_without_a_model(
    text: str, cause: str | None
) -> None:
    reader = PlainReader(INPUTS)
    assert reader.read(b'{"op":"ack","seq":7}') == PlainAck(7)
    reason = {} if cause is None else {"cause": cause}
    for name, where in (
        ("send_text_message", {"to": "dm.ann.bob"}),
        ("broadcast_text_message", {}),
        ("post_to_channel", {"channel": "dev"}),
    ):
        args = {"text": text, **where, **reason}
        call = {"op": "call", "ref": "r:1", "name": name, "args": args, "cid": "01J:a"}
        data = json.dumps(call, ensure_ascii=False).encode()
        if b"\\u" not in data:
            assert isinstance(reader.read(data), PlainCall)
            assert reader.read(data[:-1] + b',"op":"call"}') is None
