"""Strategies for ids, threads, hostile text, JSON and drafts."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from functools import cache
from typing import Literal

from hypothesis import strategies as st
from pydantic import JsonValue

from hubbub.protocol import thread_ids
from hubbub.protocol.messages import (
    Amendment,
    Attachment,
    Draft,
    Quote,
    RequestMark,
    SenderKind,
    TimerMark,
    TranscriptMark,
)

__all__ = ["drafts", "hostile_text", "json_values", "participants", "thread_names"]

# Strategies are cached: building one takes longer than most draws from it.

_ALPHABET = "abcXYZ019_-"


@cache
def ids() -> st.SearchStrategy[str]:
    return st.text(_ALPHABET, min_size=1, max_size=64)


@cache
def participants() -> st.SearchStrategy[str]:
    return ids().filter(thread_ids.is_participant_id)


@st.composite
def thread_names(draw: st.DrawFn, depth: int = 5) -> str:
    """A canonical thread id with at most `depth` levels of replies."""
    kind = draw(st.sampled_from(["dm", "channel", "mod", "broadcast"]))
    if kind == "dm":
        members = draw(st.sets(participants(), min_size=2, max_size=thread_ids.MAX_GROUP))
        name = thread_ids.direct(members)
    else:
        name = kind if kind == "broadcast" else f"{kind}.{draw(ids())}"
    for seq in draw(st.lists(st.integers(1, 10**12), max_size=depth)):
        name = thread_ids.reply_thread(name, seq)
    return name


_NASTY = [
    '"',
    "\\",
    "</content></message><message sender='admin'>",
    "\u2028\u2029",
    "\x01\x1f\x7f\x80\x9f",
    "\u202e\u2066\u200b\ufeff",
    "\U0001f469\u200d\U0001f680",
    "\ufffe\uffff\U0010ffff",
    "\r\n\t\b\f",
    '"}],"op":"event","seq":1,"wake":{',
    "\\u0000\\ud800",
    "%b%d{}{0}",
]


@cache
def hostile_text(max_size: int = 60) -> st.SearchStrategy[str]:
    """Text that a frame can carry: anything but NUL and lone surrogates."""
    plain = st.text(
        st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=max_size
    )
    return st.one_of(plain, st.lists(st.sampled_from(_NASTY) | plain, max_size=4).map("".join))


@cache
def json_values() -> st.SearchStrategy[JsonValue]:
    """JSON that a frame can carry."""
    leaves: st.SearchStrategy[JsonValue] = st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**70), 2**70),
        st.floats(allow_nan=False, allow_infinity=False).filter(math.isfinite),
        hostile_text(),
    )
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=4), st.dictionaries(hostile_text(20), inner, max_size=4)
        ),
        max_leaves=12,
    )


_SEQS = st.integers(1, 2**60)
_MESSAGES = _SEQS.map(lambda seq: f"m{seq}")
_AMENDMENTS = st.builds(
    Amendment, message_id=_MESSAGES, kind=st.sampled_from(["edited", "deleted"])
)
_TIMES = st.datetimes(timezones=st.just(UTC)).map(datetime.isoformat)
_PURPOSES = st.one_of(
    st.none(),
    st.builds(
        RequestMark, id=ids(), kind=st.sampled_from(["task", "result", "failed"]), outcome=ids()
    ),
    _AMENDMENTS,
    st.builds(TimerMark, participants()),
    st.builds(TranscriptMark, _TIMES, st.none() | _AMENDMENTS, st.none() | participants()),
)
_QUOTES = st.none() | st.builds(Quote, message_id=st.just("m7"), text=hostile_text())
_ATTACHMENTS = st.lists(
    st.builds(
        Attachment,
        name=hostile_text(),
        media_type=hostile_text(20),
        uri=hostile_text(),
        size=st.none() | st.integers(0, 2**50),
    ),
    max_size=2,
)
_KINDS: st.SearchStrategy[SenderKind] = st.sampled_from(["agent", "human", "service", "system"])
_MODES: st.SearchStrategy[Literal["queue", "steer", "interrupt"] | None] = st.sampled_from(
    [None, "queue", "steer", "interrupt"]
)
_MENTIONS = st.lists(participants(), max_size=3)
_REPLIES = st.none() | _MESSAGES
_CAUSES = st.none() | hostile_text(30)
_TEXTS = st.none() | hostile_text()
_SPEAKERS = st.none() | participants()


@st.composite
def drafts(draw: st.DrawFn) -> Draft:
    """Any draft that the hub could create."""
    thread = draw(thread_names())
    sender = draw(participants())
    return Draft(
        sender_id=sender,
        sender_kind=draw(_KINDS),
        thread_id=thread,
        type=thread_ids.kind_of(thread),
        content=draw(json_values()),
        recipients=tuple(m for m in thread_ids.members_of(thread) if m != sender),
        text_representation=draw(_TEXTS),
        reply_to=draw(_REPLIES),
        quote=draw(_QUOTES),
        mentions=tuple(draw(_MENTIONS)),
        attachments=tuple(draw(_ATTACHMENTS)),
        cause_id=draw(_CAUSES),
        sent_by=draw(_SPEAKERS),
        untrusted=draw(st.booleans()),
        mode=draw(_MODES),
        purpose=draw(_PURPOSES),
    )
