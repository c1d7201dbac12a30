from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from pydantic import JsonValue

from hubbub.errors import OperationError
from hubbub.protocol.codec import (
    PlainSendResult,
    SharedEvent,
    encode_error,
    encode_message,
    encode_result,
    encode_wake,
)
from hubbub.protocol.frames import ErrorFrame, Event, Result, hub_frames
from hubbub.protocol.messages import Draft, Message, TranscriptMark, Wake
from hubbub.protocol.operations import SendResult
from tests.unit.protocol.drafts import drafts, hostile_text, json_values, participants

NOW = "2026-01-02T03:04:05.678Z"
SEQS = st.integers(1, 2**62)
WAKES = st.builds(
    Wake,
    reason=st.sampled_from(["direct", "mention", "broadcast", "last_speaker"]),
    reply=st.sampled_from(["required", "optional"]),
    turn=st.tuples(participants(), SEQS).map(lambda t: f"{t[0]}-m{t[1]}"),
)


COPIED = (
    *("thread_id", "sender_id", "sender_kind", "type", "recipients", "content", "mentions"),
    *("text_representation", "reply_to", "quote", "attachments", "cause_id", "sent_by"),
    *("untrusted", "request", "mode", "amends", "timer_of"),
)


def expected(draft: Draft, seq: int, tseq: int, hop: int) -> Message:
    purpose = draft.purpose
    copied: dict[str, Any] = {name: getattr(draft, name) for name in COPIED}
    return Message(
        **copied,
        id=f"m{seq}",
        seq=seq,
        tseq=tseq,
        interaction_id="i1",
        hop=hop,
        imported=isinstance(purpose, TranscriptMark),
        sent_at=datetime.fromisoformat(
            purpose.sent_at if isinstance(purpose, TranscriptMark) else NOW
        ),
    )


@given(drafts(), SEQS, SEQS, st.integers(0, 1000))
def test_a_spliced_message_equals_the_model_of_its_draft(
    draft: Draft, seq: int, tseq: int, hop: int
) -> None:
    body = encode_message(draft, seq, tseq, "i1", hop, NOW)
    assert Message.model_validate_json(body) == expected(draft, seq, tseq, hop)
    keys = [key for key, _ in json.loads(body, object_pairs_hook=list)]
    assert len(keys) == len(set(keys))


def test_content_can_have_numbers_of_any_size() -> None:
    draft = Draft("ann", "human", "dm.ann.bob", "direct", {"n": 10**30}, ("bob",))
    assert json.loads(encode_message(draft, 1, 1, "i1", 0, NOW))["content"] == {"n": 10**30}


@given(drafts(), SEQS, SEQS, st.none() | WAKES)
def test_an_event_contains_the_message_and_the_wake_of_its_recipient(
    draft: Draft, seq: int, prev: int, wake: Wake | None
) -> None:
    body = encode_message(draft, seq, 3, "i1", 0, NOW)
    spliced = (encode_wake(wake.reason, wake.reply, wake.turn),) if wake else ()
    shared = SharedEvent(seq, 3, body)
    for before, wakes in ((prev, ()), (prev, spliced), (prev, spliced), (prev + 1, spliced)):
        assert hub_frames.validate_json(shared.frame(before, *wakes)) == Event(
            seq=seq,
            prev=before,
            tseq=3,
            message=expected(draft, seq, 3, 0),
            wake=wake if wakes else None,
        )
    assert shared.frame(prev + 1, *spliced) is shared.frame(prev + 1, *spliced)


@given(hostile_text().filter(lambda text: 1 <= len(text) <= 64), json_values(), st.booleans())
def test_a_result_contains_its_ref_and_value(ref: str, value: JsonValue, duplicate: bool) -> None:
    mark = {"duplicate": True} if duplicate else {}
    frame = encode_result(ref, json.dumps(value).encode(), **mark)
    assert hub_frames.validate_json(frame) == Result(ref=ref, value=value, duplicate=duplicate)


NAMES = st.lists(participants(), max_size=4, unique=True)


@given(drafts(), SEQS, SEQS, NAMES, NAMES, NAMES, st.dictionaries(participants(), SEQS, max_size=3))
def test_a_spliced_send_result_equals_its_model(
    draft: Draft,
    seq: int,
    tseq: int,
    present: list[str],
    absent: list[str],
    unresolved: list[str],
    queued: dict[str, int],
) -> None:
    thread = draft.thread_id
    body = encode_message(draft, seq, tseq, "i1", 0, NOW)
    plain = PlainSendResult(f"m{seq}", seq, thread, tseq, Raw(body), present, absent, queued)
    plain.unresolved = tuple(unresolved)
    value = json.loads(encode_result("r1", plain))["value"]
    assert {"present", "absent", "queued", "unresolved"} & value.keys() == {
        name for name in ("present", "absent", "queued", "unresolved") if getattr(plain, name)
    }
    assert SendResult.model_validate_json(json.dumps(value)) == SendResult(
        id=f"m{seq}",
        seq=seq,
        thread_id=thread,
        tseq=tseq,
        present=tuple(present),
        absent=tuple(absent),
        unresolved=tuple(unresolved),
        queued=queued,
        message=expected(draft, seq, tseq, 0),
    )


@given(
    hostile_text(),
    st.none() | st.just("r1"),
    st.booleans(),
    st.none() | st.floats(0, 100),
    st.dictionaries(hostile_text(20), json_values(), max_size=3),
)
def test_an_error_frame_contains_every_field_of_the_error(
    message: str,
    ref: str | None,
    temporary: bool,
    wait: float | None,
    details: dict[str, JsonValue],
) -> None:
    error = OperationError(
        "limit", message, temporary=temporary, retry_after_s=wait, details=details
    )
    assert hub_frames.validate_json(encode_error(error, ref)) == ErrorFrame(
        ref=ref,
        code="limit",
        message=message,
        temporary=temporary,
        retry_after_s=wait,
        details=details,
    )


@given(drafts())
def test_no_frame_contains_a_line_break_or_control_character(draft: Draft) -> None:
    """A frame is one line in any log."""
    body = encode_message(draft.replace(content="a\nb\x01"), 1, 1, "i1", 0, NOW)
    assert not any(byte < 0x20 for byte in body)
