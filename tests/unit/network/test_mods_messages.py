"""Mods receive messages exactly as they are in the log."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.network.log import CallbackWaiter, Entry
from hubbub.network.mods.runtime import message_of
from hubbub.network.threads import Threads
from hubbub.protocol.codec import encode_message
from hubbub.protocol.messages import (
    Amendment,
    Attachment,
    Draft,
    Message,
    Purpose,
    Quote,
    RequestMark,
    TimerMark,
    TranscriptMark,
)

pytestmark = pytest.mark.behaviour("M-68")

TIME = "2026-01-02T03:04:05.678Z"
PLAIN = {
    "sender_id": "ann",
    "sender_kind": "human",
    "thread_id": "dm.ann.bob",
    "type": "direct",
    "content": "hello",
}
OTHER: dict[str, Any] = {
    "sender_id": "zoe",
    "sender_kind": "agent",
    "thread_id": "broadcast",
    "type": "broadcast",
    "content": {"a": [1, None, "x"]},
    "recipients": ("bob", "cy"),
    "text_representation": "shown",
    "reply_to": "m3",
    "quote": Quote(message_id="m2", text="so"),
    "mentions": ("bob",),
    "attachments": (Attachment(name="a", uri="file:a"),),
    "cause_id": "m4",
    "unresolved": ("dan",),
    "sent_by": "olga",
    "untrusted": True,
    "mode": "steer",
    "awaits": True,
    "purpose": None,
    "notes": ("mind this",),
    "silent": True,
}


def test_the_examples_cover_every_field_of_a_draft() -> None:
    assert set(OTHER) == set(Draft.__struct_fields__)


EDITS = Amendment(message_id="m2", kind="edited")
PURPOSES = [
    None,
    RequestMark(id="m1", kind="task", deadline=datetime(2027, 1, 1, tzinfo=UTC)),
    EDITS,
    TimerMark("ann"),
    TranscriptMark("2020-01-01T00:00:00.000Z", EDITS, "ann"),
]


@given(
    st.sets(st.sampled_from(sorted(OTHER))),
    st.text(),
    st.sampled_from(["i7", None]),
    st.sampled_from(PURPOSES),
)
def test_a_message_for_mods_equals_the_one_parsed_from_the_log(
    names: set[str], text: str, interaction: str | None, purpose: Purpose | None
) -> None:
    fields = {**PLAIN, "content": text, **{name: OTHER[name] for name in names}}
    draft = Draft(**fields).replace(purpose=purpose)
    thread = Threads().ensure(draft.thread_id)
    entry = Entry(draft, CallbackWaiter(lambda outcome: None))
    entry.thread, entry.decisions = thread, []
    entry.interaction, entry.hop, entry.hop_limit = interaction, 2, 9
    entry.seq, entry.tseq, entry.sent_at = 8, 3, TIME
    entry.body = encode_message(draft, 8, 3, interaction or "i8", 2, TIME)
    built, parsed = message_of(entry), Message.model_validate_json(entry.body)
    assert built == parsed
    assert built.model_dump_json() == parsed.model_dump_json()
    assert built.model_copy(update={"amended": "edited"}).amended == "edited"
