from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pydantic import JsonValue, ValidationError

from hubbub.protocol.messages import Attachment, Card, Message, NewAttachment

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


def test_a_message_reads_as_its_representation_its_text_or_compact_json() -> None:
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


def test_fields_of_a_later_version_are_passed_over_and_those_of_a_card_kept() -> None:
    data = {**message("hi").model_dump(), "colour": "red"}
    assert Message.model_validate(data) == message("hi")
    card = Card.model_validate({"description": "x", "homepage": {"url": "y"}})
    again = Card.model_validate_json(card.model_dump_json())
    assert again.model_extra == {"homepage": {"url": "y"}}


@pytest.mark.behaviour("M-392")
def test_what_is_said_of_an_attachment_has_an_end_and_an_old_log_is_read() -> None:
    cases: list[tuple[str, int]] = [("name", 255), ("media_type", 127), ("uri", 2048)]
    for field, most in cases:
        given = {"name": "a", "uri": "file:f1"}
        NewAttachment.model_validate({**given, field: "x" * most})
        longer = {**given, field: "x" * (most + 1)}
        with pytest.raises(ValidationError, match=field):
            NewAttachment.model_validate(longer)
        assert len(getattr(Attachment.model_validate(longer), field)) == most + 1
