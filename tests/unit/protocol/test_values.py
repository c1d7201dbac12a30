"""Values in frames: codes, session states, messages, turns, and their bounds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

import pytest
from pydantic import JsonValue, ValidationError

from hubbub.mods.api import Mod
from hubbub.mods.loader import BUILT_IN, settings_of
from hubbub.network.operations import CORE_OPERATIONS
from hubbub.protocol.codes import CloseCode, ErrorCode, may_reconnect
from hubbub.protocol.frames import Ack, Identify, Signal
from hubbub.protocol.messages import Attachment, Card, Message, NewAttachment
from hubbub.protocol.turns import Step, ToolCallRecord
from hubbub.protocol.wire import WELCOME, SessionState, complaint

CODES = {
    **{"INTERNAL": 4001, "SLOW": 4002, "HEARTBEAT": 4003, "STATE_LOST": 4004, "RATE": 4005},
    **{"DRAIN": 4006, "AUTH": 4500, "BAD_FRAME": 4501, "VERSION": 4502, "REPLACED": 4503},
    "REVOKED": 4504,
}


@pytest.mark.behaviour("P-20")
def test_the_range_of_a_close_code_decides_about_reconnecting() -> None:
    assert {code.name: code.value for code in CloseCode} == CODES
    for code in CloseCode:
        assert may_reconnect(code) == (code < 4500)
    for ending in (1000, 1001, 1006, 1011, 1012):
        assert may_reconnect(ending), "standard closes allow reconnecting"
    assert not may_reconnect(1009), "an oversized frame would be oversized again"


@pytest.mark.behaviour("P-20")
def test_error_codes_equal_their_lower_case_names() -> None:
    for code in ErrorCode:
        assert f"{code}" == code.value == code.name.lower()


EARLY, AGAIN = ErrorCode.NOT_IDENTIFIED, ErrorCode.ALREADY_IDENTIFIED
OPS = ("identify", "call", "ack", "signal")
TABLE = {
    SessionState.CONNECTED: (None, EARLY, EARLY, EARLY),
    SessionState.IDENTIFYING: (AGAIN, EARLY, EARLY, EARLY),
    SessionState.READY: (AGAIN, None, None, None),
    SessionState.CLOSED: (AGAIN, EARLY, EARLY, EARLY),
}


def test_each_session_state_accepts_its_frames_and_names_the_error_for_others() -> None:
    assert set(TABLE) == set(WELCOME) == set(SessionState)
    for state, codes in TABLE.items():
        for op, code in zip(OPS, codes, strict=True):
            error = complaint(state, op)
            assert (error[0] if error else None) == code, (state, op)
    for state, text in (
        (SessionState.CONNECTED, "send `identify` before `call`"),
        (SessionState.IDENTIFYING, "wait for `ready` before `call`"),
    ):
        assert complaint(state, "call") == (EARLY, text)


NOW = datetime(2026, 1, 2, tzinfo=UTC)


def message(content: JsonValue, text: str | None = None) -> Message:
    return Message(
        id="m1",
        seq=1,
        thread_id="broadcast",
        tseq=1,
        sender_id="ann",
        sender_kind="human",
        type="broadcast",
        content=content,
        text_representation=text,
        interaction_id="i1",
        hop=0,
        sent_at=NOW,
    )


def test_the_text_of_a_message_is_its_representation_text_or_compact_json() -> None:
    cases: list[tuple[JsonValue, str | None, str]] = [
        ("hello", None, "hello"),
        ("hello", "said hello", "said hello"),
        ({"a": [1, "ä"]}, None, '{"a":[1,"ä"]}'),
        ({"a": 1}, "one", "one"),
        ({"a": 1}, "", ""),
        (None, None, "null"),
        (True, None, "true"),
    ]
    for content, representation, text in cases:
        assert message(content, representation).text == text


def test_unknown_fields_are_ignored_except_those_of_a_card() -> None:
    data = {**message("hi").model_dump(), "colour": "red"}
    assert Message.model_validate(data) == message("hi")
    card = Card.model_validate({"description": "x", "homepage": {"url": "y"}})
    again = Card.model_validate_json(card.model_dump_json())
    assert again.model_extra == {"homepage": {"url": "y"}}


@pytest.mark.behaviour("M-392")
def test_attachment_fields_have_limits_that_do_not_apply_to_stored_ones() -> None:
    cases: list[tuple[str, int]] = [("name", 255), ("media_type", 127), ("uri", 2048)]
    for field, most in cases:
        fields = {"name": "a", "uri": "file:f1"}
        NewAttachment.model_validate({**fields, field: "x" * most})
        longer = {**fields, field: "x" * (most + 1)}
        with pytest.raises(ValidationError, match=field):
            NewAttachment.model_validate(longer)
        assert len(getattr(Attachment.model_validate(longer), field)) == most + 1


def test_records_without_cost_and_offsets_are_valid() -> None:
    step = Step.model_validate_json(
        '{"n": 1, "calls": [{"id": "c", "name": "add", "arguments": {}, "duration_ms": 3.5}]}'
    )
    assert (step.cost_usd, step.at_ms) == (None, None)
    assert (step.calls[0].at_ms, step.calls[0].duration_ms) == (None, 3.5)


def test_an_impossible_cost_or_offset_is_refused() -> None:
    for field in ("cost_usd", "at_ms"):
        for wrong in (-0.001, float("inf"), float("nan")):
            with pytest.raises(ValidationError):
                Step.model_validate({"n": 1, field: wrong})
    with pytest.raises(ValidationError):
        ToolCallRecord(id="c", name="add", arguments={}, at_ms=-1.0)


TEXTS = re.compile(
    r"\b(text|content|text_representation|task|value|reason|reasoning|result|error|notes|lines|prompt"
    r"|system_prompt|arguments|schema|settings|data|card)(\[\]|\{\})*$"
)
"""Free text and data, limited only by the limits of texts and frames."""

Schema = Mapping[str, Any]  # a JSON Schema, as pydantic gives it


@pytest.mark.behaviour("B-11")
def test_every_input_name_and_list_has_a_maximum_length() -> None:
    inputs = {frame.__name__: frame.model_json_schema() for frame in (Identify, Ack, Signal)}
    for mod in _mods():
        inputs |= {each.name: each.input.model_json_schema() for each in mod.operations()}
    inputs |= {each.name: each.input.model_json_schema() for each in CORE_OPERATIONS}
    unbounded = [
        f"{name}{place}"
        for name, schema in inputs.items()
        for place in _unbounded(schema, schema, "", frozenset())
    ]
    assert unbounded == []


def _mods() -> Iterator[Mod]:
    for place in BUILT_IN.values():
        module, _, name = place.partition(":")
        kind: type[Mod] = getattr(import_module(module), name)
        yield kind(settings_of(kind, {}))


def _unbounded(schema: Schema, root: Schema, place: str, above: frozenset[str]) -> Iterator[str]:
    """The paths of fields without a bound; a recursive part is visited once."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        if name not in above:
            yield from _unbounded(root["$defs"][name], root, place, above | {name})
        return
    kind = schema.get("type")
    if kind == "array" and "maxItems" not in schema:
        yield f"{place}: list"
    if not TEXTS.search(place) and (
        (kind == "string" and not _is_short(schema))
        or (kind == "object" and "properties" not in schema)
    ):
        yield f"{place}: {kind}"
    for each in schema.get("anyOf", ()):
        yield from _unbounded(each, root, place, above)
    if isinstance(schema.get("items"), dict):
        yield from _unbounded(schema["items"], root, f"{place}[]", above)
    for name, field in schema.get("properties", {}).items():
        yield from _unbounded(field, root, f"{place}.{name}", above)


def _is_short(schema: Schema) -> bool:
    fixed = any(each in schema for each in ("maxLength", "enum", "const", "format"))
    return fixed or re.search(r"\{\d+(,\d+)?\}\$$", schema.get("pattern", "")) is not None
