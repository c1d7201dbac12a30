from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import Field, JsonValue

from hubbub.protocol.codec import Decoder, FrameError, TypedCall, encode_error
from hubbub.protocol.codes import ErrorCode
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

DECODER._plain = lambda data: None  # what the models read is the matter here


def frame(**fields: object) -> bytes:
    return json.dumps(fields, ensure_ascii=False).encode()


def call(name: str = "send_text_message", /, **args: object) -> bytes:
    return frame(op="call", ref="r1", name=name, args=args)


def refusal(data: bytes) -> FrameError:
    with pytest.raises(FrameError) as caught:
        DECODER.decode(data)
    return caught.value


def attempt(data: bytes) -> TypedCall[Input] | Ack | Signal | Identify | FrameError:
    """The frame, or the one kind of error that there may be."""
    try:
        return DECODER._decode(data)
    except FrameError as error:
        return error


# What is fine ----------------------------------------------------------------------------------


def test_a_call_becomes_the_input_of_its_operation() -> None:
    found = DECODER.decode(call(to="bob", text="hello: bob"))
    assert isinstance(found, TypedCall)
    assert found.name == "send_text_message"
    assert found.args == SendTextMessage(to="bob", text="hello: bob")
    assert (found.ref, found.cid) == ("r1", None)


def test_a_call_may_leave_out_empty_arguments() -> None:
    found = DECODER.decode(frame(op="call", ref="r1", name="list_participants"))
    assert isinstance(found, TypedCall)
    assert found.args == ListParticipants()


def test_arguments_that_are_needed_are_named_when_all_are_left_out() -> None:
    error = refusal(frame(op="call", ref="r1", name="send_text_message"))
    assert error.code == ErrorCode.BAD_REQUEST
    assert "to" in str(error)


def test_every_frame_of_a_client_is_read() -> None:
    cases: list[tuple[bytes, type]] = [
        (b'{"op":"ack","seq":5}', Ack),
        (b'{"op":"signal","type":"typing","thread_id":"direct_bob"}', Signal),
        (b'{"op":"identify","version":"hubbub.v9","participant":"ann","kind":"human"}', Identify),
    ]
    for data, kind in cases:
        assert type(DECODER.decode(data)) is kind


@pytest.mark.behaviour("P-9")
def test_unknown_fields_of_a_frame_are_ignored() -> None:
    found = DECODER.decode(frame(op="ack", seq=1, colour="red"))
    assert found == Ack(seq=1)


@given(hostile_text(), st.lists(st.sampled_from(["bob", "carol"]), min_size=1, max_size=3))
def test_text_arrives_as_it_was_written_escaped_or_not(text: str, to: list[str]) -> None:
    args = {"to": to, "text": text or "x"}
    for ascii_only in (True, False):
        data = json.dumps(
            {"op": "call", "ref": "1", "name": "send_text_message", "args": args},
            ensure_ascii=ascii_only,
        )
        # An escaped backslash before u0000 is text that speaks of NUL, not NUL.
        found = DECODER.decode(data.encode())
        assert isinstance(found, TypedCall)
        assert found.args == SendTextMessage(to=to, text=text or "x")


@given(json_values())
def test_json_content_arrives_as_it_was_written(content: JsonValue) -> None:
    data = call("send_message", to="bob", content={"it": content})
    found = attempt(data)
    if isinstance(found, FrameError):
        assert "nested deeper" in found.message or found.code == ErrorCode.TOO_LARGE
    else:
        assert isinstance(found, TypedCall)
        assert found.args == SendMessage(to="bob", content={"it": content})


# What is not -----------------------------------------------------------------------------------

DEEP = b'{"op":"call","ref":"r1","name":"send_message","args":{"to":"bob","content":%b}}'


@pytest.mark.behaviour("B-8")
def test_bad_input_is_one_error_that_says_what_is_wrong() -> None:
    cases: list[tuple[bytes, str, str]] = [
        (b"", "bad_frame", "JSON"),
        (b"hello", "bad_frame", "JSON"),
        (b'{"op":"ack"', "bad_frame", "JSON"),
        (b'{"op":"ack","seq":1}x', "bad_frame", "JSON"),
        (b"[1]", "bad_frame", "object"),
        (b"null", "bad_frame", "object"),
        (b"\xff\xfe{", "bad_frame", "JSON"),
        (b'{"op":"ack","seq":1,"a":"\xed\xa0\x80"}', "bad_frame", "JSON"),
        ('{"op":"ack","seq":1}'.encode("utf-16"), "bad_frame", "JSON"),
        (b'\xef\xbb\xbf{"op":"ack","seq":1}', "bad_frame", "JSON"),
        (b'{"op":"ack","seq":1,"a":"\\ud800"}', "bad_frame", "surrogate"),
        (b'{"op":"ack","seq":1,"a":"\\udc00x"}', "bad_frame", "surrogate"),
        (b'{"op":"ack","seq":1,"\\udfff":1}', "bad_frame", "surrogate"),
        (b'{"op":"ack","seq":NaN}', "bad_frame", "NaN"),
        (b'{"op":"ack","seq":1,"a":-Infinity}', "bad_frame", "Infinity"),
        (b'{"op":"ack","seq":1,"a":[1e999]}', "bad_frame", "1e999"),
        (b'{"op":"ack","seq":1,"seq":2}', "bad_frame", "'seq'"),
        (b'{"op":"ack","seq":1,"a":{"k":1,"\\u006b":2}}', "bad_frame", "'k'"),
        (b'{"op":"ack","seq":1,"a":"\\u0000"}', "bad_frame", "NUL"),
        (b'{"op":"ack","seq":1,"a\\u0000":1}', "bad_frame", "NUL"),
        (b'{"op":"ack","seq":1,"a":"\0"}', "bad_frame", "JSON"),
        (
            b'{"op":"ack","seq":1,"a":' + b"[" * 3000 + b"]" * 900 + b"}",
            "bad_frame",
            "deeper than 8",
        ),
        (
            b'{"op":"ack","seq":1,"a":' + b"[" * 1500 + b"]" * 1500 + b"}",
            "bad_frame",
            "deeper than 8",
        ),
        (DEEP % (b"[" * 7 + b"]" * 7), "bad_frame", "deeper than 8"),
        (DEEP % (b'{"a":' * 7 + b"1" + b"}" * 7), "bad_frame", "deeper than 8"),
        (b'{"op":"ack","seq":1' + b" " * 5000 + b"}", "too_large", "4096"),
        (b'{"op":"ack","seq":' + b"9" * 4010 + b"}", "bad_request", "seq"),
        (b'{"seq":1}', "bad_frame", "op"),
        (b'{"op":"dance"}', "bad_frame", "op: expected identify, call, ack or signal"),
        (b'{"op":["ack"],"seq":1}', "bad_frame", "op"),
        (b'{"op":null}', "bad_frame", "op"),
        (b'{"op":"hello"}', "bad_frame", "op"),
        (b'{"op":"ack","seq":-1}', "bad_request", "seq"),
        (b'{"op":"ack","seq":"1"}', "bad_request", "seq"),
        (b'{"op":"ack","seq":true}', "bad_request", "seq"),
        (b'{"op":"ack","seq":1.0}', "bad_request", "seq"),
        (b'{"op":"ack","seq":4611686018427387905}', "bad_request", "seq"),
        (b'{"op":"ack"}', "bad_request", "seq"),
        (b'{"op":"signal","type":"Typing!"}', "bad_request", "type"),
        (b'{"op":"identify","version":"hubbub.v1","kind":"human"}', "bad_request", "participant"),
        (
            b'{"op":"identify","version":"v","participant":"a b","kind":"human"}',
            "bad_request",
            "participant",
        ),
        (
            b'{"op":"identify","version":"v","participant":"ann\\n","kind":"human"}',
            "bad_request",
            "participant",
        ),
        (
            b'{"op":"identify","version":"v","participant":"a","kind":"robot"}',
            "bad_request",
            "kind",
        ),
        (b'{"op":"call","name":"list_participants","args":{}}', "bad_request", "ref"),
        (b'{"op":"call","ref":"","name":"list_participants","args":{}}', "bad_request", "ref"),
        (b'{"op":"call","ref":7,"name":"list_participants","args":{}}', "bad_request", "ref"),
        (b'{"op":"call","ref":"r","args":{}}', "bad_request", "name"),
        (b'{"op":"call","ref":"r","name":5,"args":{}}', "bad_request", "name"),
        (b'{"op":"call","ref":"r","name":"weigh","args":[]}', "bad_request", "args"),
        (
            b'{"op":"call","ref":"r","name":"weigh","args":{},"cid":"\xc3\xa4"}',
            "bad_request",
            "cid",
        ),
        (b'{"op":"call","ref":"r","name":"weigh","args":{"kilos":1e400}}', "bad_frame", "1e400"),
        (b'{"op":"call","ref":"r","name":"weigh","args":{"kilos":NaN}}', "bad_frame", "NaN"),
        (b'{"op":"call","ref":"r","name":"weigh","args":{"kilos":"7"}}', "bad_request", "kilos"),
    ]
    for data, code, says in cases:
        error = refusal(data)
        assert error.code == code, error
        assert says in error.message
        assert error.temporary is False
        ErrorFrame.model_validate_json(encode_error(error, error.ref))


@pytest.mark.behaviour("P-9")
def test_an_unknown_argument_is_named() -> None:
    error = refusal(call(to="bob", text="hi", colour="red"))
    assert (error.code, error.ref) == (ErrorCode.BAD_REQUEST, "r1")
    assert "colour" in error.message
    assert "colour" in str(error.details["field"])


def test_a_misspelled_argument_is_named_though_the_right_one_is_missing_too() -> None:
    error = refusal(call(to="bob", txt="hello"))
    assert error.code == ErrorCode.BAD_REQUEST
    assert error.message == "args.txt: no such argument"
    assert (error.details, error.ref) == ({"field": "args.txt"}, "r1")
    assert refusal(call(to="bob")).message == "args.text: field required"


def test_what_only_the_hub_may_say_is_refused_by_name() -> None:
    for field in ("seq", "sender_id", "hop", "interaction_id", "sent_at", "tseq"):
        error = refusal(call(to="bob", text="hi", **{field: 1}))
        assert error.code == ErrorCode.BAD_REQUEST
        assert field in error.message


def test_a_wrong_type_is_told_with_its_place() -> None:
    error = refusal(call(to="bob", text=["hi"]))
    assert "text" in error.message
    assert error.details["field"] == "args.text"


def test_the_place_of_a_wrong_type_is_a_path_in_the_frame() -> None:
    cases: list[object] = [7, {}, {"text": 1}]
    for to in cases:
        error = refusal(call(to=to, text="hi"))
        assert error.message == "args.to: input should be a valid string"
        assert error.details["field"] == "args.to"


def test_words_of_the_libraries_do_not_reach_the_peer() -> None:
    many = refusal(call(to="bob", text="hi", mentions=["bob"] * 200)).message
    assert many == "args.mentions: list should have at most 128 items, not 200"
    roomy = Decoder({"weigh": Weigh}, max_bytes=8192, max_depth=8)
    with pytest.raises(FrameError) as caught:
        roomy.decode(b'{"op":"ack","seq":%b}' % (b"9" * 5000))
    assert caught.value.message == "not valid JSON: a number has too many digits"


@pytest.mark.behaviour("B-11")
def test_a_frame_has_so_many_objects_and_lists_and_no_more() -> None:
    for piece in ("[],", "[[[]]],", '{"a":{}},'):
        roomy = Decoder({"send_message": SendMessage}, max_bytes=256 * 1024, max_depth=8)
        many = (piece * (100 * 1024 // len(piece))).rstrip(",")
        frames = (DEEP % f"[{many}]".encode(), b'{"op":"ack","seq":1,"x":[%b]}' % many.encode())
        for data, ref in zip(frames, ("r1", None), strict=True):
            with pytest.raises(FrameError) as caught:
                roomy.decode(data)
            assert (caught.value.code, caught.value.ref) == (ErrorCode.TOO_LARGE, ref)
            assert "at most 16384 objects and lists" in caught.value.message
        assert roomy.decode(DEEP % json.dumps(many + '"\\[').encode()).op == "call"


def test_a_call_that_is_too_large_to_be_read_is_answered_all_the_same() -> None:
    error = refusal(call(to="bob", text="x" * 5000))
    assert (error.code, error.ref) == (ErrorCode.TOO_LARGE, "r1")
    assert refusal(b'{"op":"call","ref":"\x00","x":"%b"}' % (b"x" * 5000)).ref is None


def test_an_unknown_operation_is_told_with_the_nearest_name() -> None:
    error = refusal(call("send_text_mesage", to="bob", text="hi"))
    assert error.code == ErrorCode.UNKNOWN_OPERATION
    assert "did you mean send_text_message?" in error.message
    assert error.ref == "r1"


def test_an_operation_like_no_other_is_told_where_to_look() -> None:
    assert "ready" in refusal(call("zzzzzz")).message


def test_a_long_name_does_not_come_back_in_full() -> None:
    assert len(refusal(call("x" * 3000)).message) < 200


def test_a_ref_of_the_wrong_kind_does_not_come_back() -> None:
    assert refusal(frame(op="call", ref="r" * 65, name="weigh", args={"kilos": ""})).ref is None
    assert refusal(frame(op="call", ref=["r"], name="weigh", args={})).ref is None


def test_a_ref_that_cannot_be_sent_does_not_come_back() -> None:
    for ref in ("\\u0000", "\\ud800", "r\\udfff"):
        error = refusal(b'{"op":"call","ref":"%b","name":"weigh","args":{}}' % ref.encode())
        assert error.ref is None
        assert ErrorFrame.model_validate_json(encode_error(error, error.ref)).ref is None


def test_what_a_validator_forgives_is_found_all_the_same() -> None:
    for data in (
        # Each of these validates as a model: only the second look can see what is wrong.
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
def test_no_arrangement_of_colons_hides_a_key_given_twice(
    text: str, twice: int, spaced: bool
) -> None:
    """The decoder counts colons to skip its second look; no text may balance the count."""
    colon = " : " if spaced else ":"
    body = json.dumps(text or "x")
    pairs = ['"op"%s"call"', '"ref"%s"r1"', '"name"%s"send_text_message"']
    pairs.append('"args"%s{"to"%s"bob","text"%s' + body + "}")
    pairs += ['"ref"%s"r1"'] * twice
    data = ("{" + ",".join(pairs) + "}").replace("%s", colon).encode()
    if twice:
        assert "given twice" in refusal(data).message
    else:
        found = DECODER.decode(data)
        assert isinstance(found, TypedCall)
        assert found.args == SendTextMessage(to="bob", text=text or "x")


def anything() -> st.SearchStrategy[bytes]:
    """Bytes near and far from frames."""
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


@given(anything())
def test_whatever_arrives_is_a_frame_or_a_frame_error(data: bytes) -> None:
    found = attempt(data)
    if isinstance(found, FrameError):
        assert found.message
        parsed = ErrorFrame.model_validate_json(encode_error(found, found.ref))
        assert "Traceback" not in parsed.message
    else:
        assert found.op in ("call", "ack", "signal", "identify")


@pytest.mark.parametrize("text", ["a: b", ":", '"', '":', "\\", '\\":', '{"to":"x"}', '"to" : 1'])
def test_a_colon_in_a_text_costs_no_second_look(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    args = {"to": "bob", "text": text}
    frame = {"op": "call", "ref": "1", "name": "send_text_message", "args": args}
    twice = json.dumps(frame).replace('"to"', '"to" : "eve", "to"', 1)
    with pytest.raises(FrameError, match="given twice"):
        DECODER.decode(twice.encode())

    def looked(*args: object, **more: object) -> None:
        raise AssertionError("it is read once more")

    monkeypatch.setattr(Decoder, "_look_twice", looked)
    for written in (
        json.dumps(frame),
        json.dumps(frame, indent=1),
        json.dumps(frame, separators=(" ,", " :")),
    ):
        read = DECODER._decode(written.encode())
        assert read.op == "call"
        assert read.args.model_dump(exclude_unset=True) == args
