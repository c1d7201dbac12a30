from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import Field, JsonValue
from syrupy.assertion import SnapshotAssertion

from hubbub.protocol.codec import Decoder, TypedCall, encode_error
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.frame_errors import FrameError
from hubbub.protocol.frames import Ack, ErrorFrame, Identify, Signal
from hubbub.protocol.operations import Input, ListParticipants, SendMessage, SendTextMessage
from tests.unit.protocol.drafts import hostile_text, json_values


class Weigh(Input):
    """An operation of a mod: numbers and free JSON."""

    kilos: float = 0.0
    note: Annotated[str, Field(max_length=100)] = ""
    extra: Mapping[str, JsonValue] = Field(default_factory=dict)


DECODER = Decoder(
    {
        "send_text_message": SendTextMessage,
        "send_message": SendMessage,
        "list_participants": ListParticipants,
        "weigh": Weigh,
    },
    max_bytes=4096,
    max_depth=8,
)

DECODER._plain = lambda data: None  # these tests are about decoding with models


def frame(**fields: object) -> bytes:
    return json.dumps(fields, ensure_ascii=False).encode()


def call(name: str = "send_text_message", /, **args: object) -> bytes:
    return frame(op="call", ref="r1", name=name, args=args)


def refusal(data: bytes) -> FrameError:
    with pytest.raises(FrameError) as caught:
        DECODER.decode(data)
    return caught.value


def attempt(data: bytes) -> TypedCall[Input] | Ack | Signal | Identify | FrameError:
    """The frame, or the only kind of error allowed."""
    try:
        return DECODER._decode(data)
    except FrameError as error:
        return error


# Valid frames ----------------------------------------------------------------------------------


def test_a_call_becomes_the_input_of_its_operation() -> None:
    decoded = DECODER.decode(call(to="bob", text="hello: bob"))
    assert isinstance(decoded, TypedCall)
    assert decoded.name == "send_text_message"
    assert decoded.args == SendTextMessage(to="bob", text="hello: bob")
    assert (decoded.ref, decoded.cid) == ("r1", None)
    decoded = DECODER.decode(frame(op="call", ref="r1", name="list_participants"))
    assert isinstance(decoded, TypedCall)
    assert decoded.args == ListParticipants(), "empty arguments can be omitted"
    error = refusal(frame(op="call", ref="r1", name="send_text_message"))
    assert (error.code, "to" in str(error)) == (ErrorCode.BAD_REQUEST, True), "required ones cannot"


def test_the_model_of_an_operation_is_built_at_its_first_call() -> None:
    class Ask(Input):
        what: str

    class Tell(Input):
        what: str

    reader = Decoder({"ask": Ask, "tell": Tell}, max_bytes=4096, max_depth=8)
    assert reader.decode(call("ask", what="now")).op == "call"
    assert (Ask.__pydantic_complete__, Tell.__pydantic_complete__) == (True, False)


@pytest.mark.behaviour("P-9")
def test_every_client_frame_is_decoded_and_its_unknown_fields_ignored() -> None:
    cases: list[tuple[bytes, type]] = [
        (b'{"op":"ack","seq":5}', Ack),
        (b'{"op":"signal","type":"typing","thread_id":"direct_bob"}', Signal),
        (b'{"op":"identify","version":"hubbub.v9","participant":"ann","kind":"human"}', Identify),
    ]
    for data, kind in cases:
        assert type(DECODER.decode(data)) is kind
    assert DECODER.decode(frame(op="ack", seq=1, colour="red")) == Ack(seq=1)


@given(hostile_text(), st.lists(st.sampled_from(["bob", "carol"]), min_size=1, max_size=3))
def test_text_is_decoded_exactly_whether_escaped_or_not(text: str, to: list[str]) -> None:
    args = {"to": to, "text": text or "x"}
    for ascii_only in (True, False):
        data = json.dumps(
            {"op": "call", "ref": "1", "name": "send_text_message", "args": args},
            ensure_ascii=ascii_only,
        )
        # An escaped backslash before u0000 is not NUL.
        decoded = DECODER.decode(data.encode())
        assert isinstance(decoded, TypedCall)
        assert decoded.args == SendTextMessage(to=to, text=text or "x")


@given(json_values())
def test_json_content_is_decoded_exactly(content: JsonValue) -> None:
    data = call("send_message", to="bob", content={"it": content})
    decoded = attempt(data)
    if isinstance(decoded, FrameError):
        assert "nested deeper" in decoded.message or decoded.code == ErrorCode.TOO_LARGE
    else:
        assert isinstance(decoded, TypedCall)
        assert decoded.args == SendMessage(to="bob", content={"it": content})


# Invalid frames --------------------------------------------------------------------------------

DEEP = b'{"op":"call","ref":"r1","name":"send_message","args":{"to":"bob","content":%b}}'


BAD_FRAMES = [
    (b"", "JSON"),
    (b"hello", "JSON"),
    (b'{"op":"ack"', "JSON"),
    (b'{"op":"ack","seq":1}x', "JSON"),
    (b"[1]", "object"),
    (b"null", "object"),
    (b"\xff\xfe{", "JSON"),
    (b'{"op":"ack","seq":1,"a":"\xed\xa0\x80"}', "JSON"),
    ('{"op":"ack","seq":1}'.encode("utf-16"), "JSON"),
    (b'\xef\xbb\xbf{"op":"ack","seq":1}', "JSON"),
    (b'{"op":"ack","seq":1,"a":"\\ud800"}', "surrogate"),
    (b'{"op":"ack","seq":1,"a":"\\udc00x"}', "surrogate"),
    (b'{"op":"ack","seq":1,"\\udfff":1}', "surrogate"),
    (b'{"op":"ack","seq":NaN}', "NaN"),
    (b'{"op":"ack","seq":1,"a":-Infinity}', "Infinity"),
    (b'{"op":"ack","seq":1,"a":[1e999]}', "1e999"),
    (b'{"op":"ack","seq":1,"seq":2}', "'seq'"),
    (b'{"op":"ack","seq":1,"a":{"k":1,"\\u006b":2}}', "'k'"),
    (b'{"op":"ack","seq":1,"a":"\\u0000"}', "NUL"),
    (b'{"op":"ack","seq":1,"a\\u0000":1}', "NUL"),
    (b'{"op":"ack","seq":1,"a":"\0"}', "JSON"),
    (b'{"op":"ack","seq":1,"a":%b}' % (b"[" * 3000 + b"]" * 900), "deeper than 8"),
    (b'{"op":"ack","seq":1,"a":%b}' % (b"[" * 1500 + b"]" * 1500), "deeper than 8"),
    (DEEP % (b"[" * 7 + b"]" * 7), "deeper than 8"),
    (DEEP % (b'{"a":' * 7 + b"1" + b"}" * 7), "deeper than 8"),
    (DEEP % (b"[" * 6 + b'"\\u0000"' + b"]" * 6), "NUL"),
    (b'{"seq":1}', "op"),
    (b'{"op":"dance"}', "op: expected identify, call, ack or signal"),
    (b'{"op":["ack"],"seq":1}', "op"),
    (b'{"op":null}', "op"),
    (b'{"op":"hello","ref":"r"}', "op"),
    *((b'{"op":"%b"}' % (b"d" * n), "op") for n in (64, 65)),
    (b'{"op":"call","ref":"r","name":"weigh","args":{"kilos":1e400}}', "1e400"),
    (b'{"op":"call","ref":"r","name":"weigh","args":{"kilos":NaN}}', "NaN"),
]
"""Bytes that are not a frame, and the expected message."""
BAD_FIELDS = [
    (b'{"op":"ack","seq":' + b"9" * 4010 + b"}", "seq"),
    *((b'{"op":"ack","seq":%b}' % value, "seq") for value in (b"-1", b'"1"', b"true", b"1.0")),
    (b'{"op":"ack","seq":4611686018427387905}', "seq"),
    *((b'{"op":"ack"%b}' % more, "seq") for more in (b"", b',"ack":{"seq":1}')),
    (b'{"op":"signal","type":"Typing!"}', "type"),
    (b'{"op":"identify","version":"hubbub.v1","kind":"human"}', "participant"),
    (b'{"op":"identify","version":"v","participant":"a b","kind":"human"}', "participant"),
    (b'{"op":"identify","version":"v","participant":"ann\\n","kind":"human"}', "participant"),
    (b'{"op":"identify","version":"v","participant":"a","kind":"robot"}', "kind"),
    (b'{"op":"call","name":"list_participants","args":{}}', "ref"),
    (b'{"op":"call","ref":"","name":"list_participants","args":{}}', "ref"),
    (b'{"op":"call","ref":7,"name":"list_participants","args":{}}', "ref"),
    (b'{"op":"call","ref":"r","args":{}}', "name"),
    (b'{"op":"call","ref":"r","name":5,"args":{}}', "name"),
    (b'{"op":"call","ref":"r","name":"weigh","args":[]}', "args"),
    (b'{"op":"call","ref":"r","name":"weigh","args":{},"cid":"\xc3\xa4"}', "cid"),
    (b'{"op":"call","ref":"r","name":"weigh","args":{"kilos":"7"}}', "kilos"),
    (b'{"op":"call","ref":"r","name":"weigh","args":{"kilos":"7"},"weigh":{}}', "kilos"),
]
"""Frames with an invalid field, and its name."""


@pytest.mark.behaviour("B-8")
def test_bad_input_is_one_error_that_names_the_problem(snapshot: SnapshotAssertion) -> None:
    large = (b'{"op":"ack","seq":1' + b" " * 5000 + b"}", "too_large", "4096")
    frames = [(data, "bad_frame", expected) for data, expected in BAD_FRAMES]
    fields = [(data, "bad_request", expected) for data, expected in BAD_FIELDS]
    answers: list[str] = []
    for data, code, expected in (large, *frames, *fields):
        error = refusal(data)
        assert error.code == code, error
        assert expected in error.message
        assert error.temporary is False
        answer = encode_error(error, error.ref).decode()
        ErrorFrame.model_validate_json(answer)
        if "not valid JSON: E" not in answer:  # depends on the Python version
            answers.append(answer)
    assert answers == snapshot


@pytest.mark.behaviour("P-9")
def test_an_invalid_argument_is_reported_with_its_path_in_the_frame() -> None:
    cases: list[tuple[dict[str, object], str, str]] = [
        ({"to": "bob", "txt": "hello"}, "args.txt", "no such argument"),
        ({"to": "bob", "text": "hi", "colour": "red"}, "args.colour", "no such argument"),
        ({"to": "bob"}, "args.text", "field required"),
        ({"to": "bob", "text": ["hi"]}, "args.text", "input should be a valid string"),
        ({"to": 7, "text": "hi"}, "args.to", "valid string"),
        ({"to": {}, "text": "hi"}, "args.to", "valid string"),
        ({"to": {"text": 1}, "text": "hi"}, "args.to", "valid string"),
    ]
    for args, field, expected in cases:
        error = refusal(call(**args))
        assert (error.code, error.ref) == (ErrorCode.BAD_REQUEST, "r1")
        assert error.message.startswith(f"{field}: ")
        assert expected in error.message
        assert error.details == {"field": field}


def test_fields_reserved_for_the_hub_are_refused_by_name() -> None:
    for field in ("seq", "sender_id", "hop", "interaction_id", "sent_at", "tseq"):
        error = refusal(call(to="bob", text="hi", **{field: 1}))
        assert error.code == ErrorCode.BAD_REQUEST
        assert field in error.message


def test_error_messages_of_libraries_are_not_sent_to_the_peer() -> None:
    many = refusal(call(to="bob", text="hi", mentions=["bob"] * 200)).message
    assert many == "args.mentions: list should have at most 128 items, not 200"
    large_decoder = Decoder({"weigh": Weigh}, max_bytes=8192, max_depth=8)
    with pytest.raises(FrameError) as caught:
        large_decoder.decode(b'{"op":"ack","seq":%b}' % (b"9" * 5000))
    assert caught.value.message == "not valid JSON: a number has too many digits"


@pytest.mark.behaviour("B-11")
def test_a_frame_has_a_limited_number_of_objects_and_lists() -> None:
    for piece in ("[],", "[[[]]],", '{"a":{}},'):
        large_decoder = Decoder({"send_message": SendMessage}, max_bytes=256 * 1024, max_depth=8)
        many = (piece * (100 * 1024 // len(piece))).rstrip(",")
        frames = (DEEP % f"[{many}]".encode(), b'{"op":"ack","seq":1,"x":[%b]}' % many.encode())
        for data, ref in zip(frames, ("r1", None), strict=True):
            with pytest.raises(FrameError) as caught:
                large_decoder.decode(data)
            assert (caught.value.code, caught.value.ref) == (ErrorCode.TOO_LARGE, ref)
            assert "at most 16384 objects and lists" in caught.value.message
        for texts in (many + '"\\[', ["\\", '"', many]):
            assert large_decoder.decode(DEEP % json.dumps(texts).encode()).op == "call"


def test_extreme_nesting_anywhere_is_an_error() -> None:
    large_decoder = Decoder({"weigh": Weigh}, max_bytes=256 * 1024, max_depth=8)
    deep = b"[" * 50_000 + b"]" * 50_000
    for data in (
        b'{"op":"call","ref":"r1","name":"weigh","args":{"note":%b}}' % deep,
        b'{"op":"call","ref":"r1","name":"weigh","args":%b}' % deep,
        b'{"op":"ack","seq":%b}' % deep,
        b'{"op":"ack","seq":1,"x":%b}' % deep,
    ):
        with pytest.raises(FrameError, match=r"deeper than 8|at most 16384"):
            large_decoder.decode(data)


def test_an_oversized_call_is_still_answered_with_its_ref() -> None:
    error = refusal(call(to="bob", text="x" * 5000))
    assert (error.code, error.ref) == (ErrorCode.TOO_LARGE, "r1")
    assert refusal(b'{"op":"call","ref":"\x00","x":"%b"}' % (b"x" * 5000)).ref is None
    assert refusal(b'{"op":"call","ref":"\xff","x":"%b"}' % (b"x" * 5000)).ref == "\ufffd"
    just = b'{"op":"ack","seq":1' + b" " * (4096 - 20) + b"}"
    assert DECODER.decode(just) == Ack(seq=1)
    assert refusal(just + b" ").code == ErrorCode.TOO_LARGE


def test_an_unknown_operation_is_reported_with_the_nearest_name(
    snapshot: SnapshotAssertion,
) -> None:
    reader = Decoder({"weigh": Weigh}, max_bytes=4096, max_depth=8)
    for name in ("wiegh", "zzzzzz", "x" * 3000):  # a long name is not echoed in full
        with pytest.raises(FrameError) as caught:
            reader.decode(call(name))
        assert encode_error(caught.value, caught.value.ref).decode() == snapshot


def test_an_invalid_ref_is_not_echoed() -> None:
    for long, ref in (("r" * 64, "r" * 64), ("r" * 65, None)):
        assert refusal(frame(op="call", ref=long, name="weigh", args={"kilos": ""})).ref == ref
    assert refusal(frame(op="call", ref=["r"], name="weigh", args={})).ref is None
    for ref in ("\\u0000", "\\ud800", "r\\udfff"):
        error = refusal(b'{"op":"call","ref":"%b","name":"weigh","args":{}}' % ref.encode())
        assert error.ref is None
        assert ErrorFrame.model_validate_json(encode_error(error, error.ref)).ref is None


def test_frames_that_a_lenient_validator_accepts_are_refused() -> None:
    for data in (
        # Each of these validates as a model; only the second pass detects the problem.
        b'{"op":"call","ref":"r1","name":"list_participants","args":{},"ref":"r2"}',
        b'{"op":"call","ref":"r1","name":"send_text_message","args":{"to":"a","text":"b",'
        b'"text":"c"}}',
        b'{"op":"call","ref":"r1","name":"send_text_message","args":{"to":"a","text":"\\u0000"}}',
        b'{"op":"call","ref":"r1","name":"send_message","args":{"to":"a","content":NaN}}',
        b'{"op":"call","ref":"r1","name":"send_message","args":{"to":"a","content":1e999}}',
        b'{"op":"call","ref":"r1","name":"send_message","args":{"to":"a","content":-1e999}}',
        b'{"op":"call","ref":"r1","name":"weigh","args":{"kilos":Infinity}}',
        b'{"op":"call","ref":"r1","name":"list_participants","args":{},"x":[[[[[[[[[[1]]]]]]]]]]}',
        b'{"op":"call","ref":"r1","name":"list_participants","args":{},"x":1e999}',
        b'{"op":"call","ref":"r1","name":"list_participants","args":{},"x":"\\ud83d"}',
        b'{"op":"call","ref":"r1","name":"weigh","args":{"extra":{"a":1,"a":2}}}',
    ):
        error = refusal(data)
        assert error.code == ErrorCode.BAD_FRAME
        assert error.ref in ("r1", "r2")


COLONS = st.sampled_from([":", '"', "\\", ",", "{", "}", "\\u0000", "\\u003a", "x"])


@given(st.lists(COLONS, max_size=8).map("".join), st.integers(0, 3), st.booleans())
@example("", 1, False)
def test_no_arrangement_of_colons_hides_a_duplicate_key(
    text: str, twice: int, spaced: bool
) -> None:
    """The decoder counts colons to skip its second pass; no text can balance the count."""
    colon = " : " if spaced else ":"
    body = json.dumps(text or "x")
    pairs = ['"op"%s"call"', '"ref"%s"r1"', '"name"%s"send_text_message"']
    pairs.append('"args"%s{"to"%s"bob","text"%s' + body + "}")
    pairs += ['"ref"%s"r1"'] * twice
    data = ("{" + ",".join(pairs) + "}").replace("%s", colon).encode()
    if twice:
        assert "given twice" in refusal(data).message
    else:
        decoded = DECODER.decode(data)
        assert isinstance(decoded, TypedCall)
        assert decoded.args == SendTextMessage(to="bob", text=text or "x")


def near_frames() -> st.SearchStrategy[bytes]:
    """Bytes that resemble frames more or less."""
    fields = st.dictionaries(
        st.sampled_from(["op", "ref", "name", "args", "cid", "seq", "type", "version", "kind"]),
        st.sampled_from(["call", "ack", "signal", "identify", "send_text_message", "weigh", "r1"])
        | json_values(),
        max_size=6,
    )
    texts = fields.map(lambda value: json.dumps(value).encode())
    cut = st.tuples(texts, st.integers(0, 80)).map(lambda pair: pair[0][: pair[1]])
    spliced = st.tuples(texts, st.integers(0, 80), st.binary(max_size=6)).map(
        lambda t: t[0][: t[1]] + t[2] + t[0][t[1] :]
    )
    return st.one_of(st.binary(max_size=60), texts, cut, spliced)


@given(near_frames())
def test_any_bytes_are_a_frame_or_a_frame_error(data: bytes) -> None:
    decoded = attempt(data)
    if isinstance(decoded, FrameError):
        assert decoded.message
        parsed = ErrorFrame.model_validate_json(encode_error(decoded, decoded.ref))
        assert "Traceback" not in parsed.message
    else:
        assert decoded.op in ("call", "ack", "signal", "identify")


def test_a_colon_in_a_text_costs_no_second_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    def encodings(text: str) -> list[str]:
        args = {"to": "bob", "text": text}
        whole = {"op": "call", "ref": "1", "name": "send_text_message", "args": args}
        compact = json.dumps(whole, separators=(" ,", " :"))
        return [json.dumps(whole), json.dumps(whole, indent=1), compact]

    texts = ("a: b", ":", '"', '":', "\\", '\\":', '{"to":"x"}', '"to" : 1')
    for text in texts:
        twice = encodings(text)[0].replace('"to"', '"to" : "eve", "to"', 1)
        with pytest.raises(FrameError, match="given twice"):
            DECODER.decode(twice.encode())

    def fail(*args: object, **more: object) -> None:
        raise AssertionError("second pass")

    monkeypatch.setattr(Decoder, "_look_twice", fail)
    for text in texts:
        for data in encodings(text):
            decoded = DECODER.decode(data.encode())
            assert decoded.op == "call"
            assert isinstance(decoded.args, SendTextMessage)
            assert (decoded.args.to, decoded.args.text) == ("bob", text)
