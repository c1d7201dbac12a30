"""Untrusted text, colours, and the rendering of lines."""

from __future__ import annotations

import time
import unicodedata
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.people.chat.console import STYLES, plain, render
from hubbub.people.messages import PALETTE, colour_of
from hubbub.people.shown import DayHeading, MessageLine, NoteLine, OtherThreadLine, ThreadHeading
from hubbub.people.text import clip, columns, one_line, visible, wrap
from hubbub.protocol.messages import Attachment, Quote
from tests.unit.people.chatting import posted

BIDI = [*map(chr, range(0x202A, 0x202F)), *map(chr, range(0x2066, 0x206A)), "\u200e", "\u061c"]


def test_control_and_bidi_characters_become_visible() -> None:
    for text, shown in {
        "plain äöü 漢字 🙂": "plain äöü 漢字 🙂",
        "\x1b[31mred": "<U+001B>[31mred",
        "\x9b31m": "<U+009B>31m",
        "over\rwritten": "over<U+000D>written",
        "dos\r\nline": "dos\nline",
        "a\tb": "a    b",
        "exe\u202egpj": "exe<U+202E>gpj",
        "a\u2028b": "a<U+2028>b",
        "\u200b": "<U+200B>",
        "hi\U000e0068": "hi<U+E0068>",
        "family 👨‍👩‍👧": "family 👨‍👩‍👧",
    }.items():
        assert visible(text) == shown


@pytest.mark.behaviour("U-2")
@given(st.text(), st.text(), st.text())
def test_no_text_or_name_controls_the_terminal(text: str, name: str, quote: str) -> None:
    message = posted(5, text).model_copy(
        update={"sender_id": name, "quote": Quote(message_id="m1", text=quote)}
    )
    lines = (MessageLine(message, False, True, "ann"), OtherThreadLine(message, "broadcast"))
    for shown in (visible(text), *(plain(render(line)) for line in lines)):
        for character in shown:
            category = unicodedata.category(character)
            assert character == "\n" or category not in ("Cc", "Cs", "Zl", "Zp")
            assert character not in BIDI
    assert len(one_line(text).splitlines()) <= 1


@given(st.text(alphabet=st.characters(exclude_categories=("Cc", "Cs"))), st.integers(1, 40))
def test_a_clipped_text_is_a_prefix_within_the_width(text: str, width: int) -> None:
    cut = clip(text, width)
    assert cut == text or (cut.endswith("…") and text.startswith(cut[:-1]))
    columns = sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in cut
    )
    assert columns <= width


def test_text_wraps_between_words() -> None:
    for text, width, shown in (
        ("one two three", 20, "one two three"),
        ("one two three", 9, "one two\n  three"),
        ("one two three", 6, "one\n  two\n  three"),
        ("https://a.b/long one", 6, "https://a.b/long\n  one"),
        ("a\n\n  code  here", 20, "a\n  \n    code  here"),
        ("漢字 漢字", 6, "漢字\n  漢字"),
        ("", 5, ""),
    ):
        assert wrap(text, width, "  ") == shown
    assert wrap("one two three", 9, "", taken=4) == "one\ntwo three"


def test_a_long_text_is_wrapped_in_one_pass() -> None:
    """Counting all columns anew at each word takes minutes for this text."""
    text = "é " + "lorem " * 40_000
    for width in (100, 10**6):
        wrapped = wrap(text, width, "  ")
        assert wrapped.split() == text.split()
        assert all(columns(line) <= width for line in wrapped.split("\n"))
    assert wrap(" " * 60_000 + "é" + " " * 60_000, 10, "").strip() == "é"


@given(st.text(alphabet="ab 漢\n", max_size=80), st.integers(8, 30), st.integers(0, 6))
def test_wrapping_changes_only_white_space_and_stays_within_the_width(
    text: str, width: int, taken: int
) -> None:
    wrapped = wrap(text, width, "  ", taken)
    assert wrapped.split() == text.split()
    for n, line in enumerate(wrapped.split("\n")):
        words = line.split()
        assert len(words) <= 1 or columns(line) + (taken if n == 0 else 0) <= width


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2.1 defines it."""
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_a_participant_has_a_fixed_colour_readable_on_black_and_white() -> None:
    assert colour_of("alice") == colour_of("alice") == "#af5f5f"
    assert len({colour_of(f"agent{n}") for n in range(100)}) == len(PALETTE)
    styles = (part[3:] for style in STYLES.values() for part in style.split() if "fg:" in part)
    for colour in {*PALETTE, *styles}:
        light = luminance(colour)
        assert (light + 0.05) / 0.05 >= 3, colour
        assert 1.05 / (light + 0.05) >= 3, colour


def test_a_message_is_rendered_with_time_id_sender_quote_and_attachments() -> None:
    quoting = posted(5, "see").model_copy(
        update={
            "quote": Quote(message_id="m1", text="what\nwas"),
            "attachments": (Attachment(name="plan.md", uri="hub:files/1"),),
        }
    )
    sums = posted(5, {"sum": 4})
    for message, mine, shown in (
        (posted(5, "hello"), False, "12:05 m5 bob: hello"),
        (posted(5, "hello", sender="ann"), True, "12:05 m5 ann: hello ✓"),
        (posted(5, "one\ntwo\n"), False, "12:05 m5 bob: one\n      two"),
        (sums, False, '12:05 m5 bob: {"sum":4}'),
        (sums.model_copy(update={"text_representation": "four"}), False, "12:05 m5 bob: four"),
        (quoting, False,
         "12:05 m5 bob: > what was\n      see\n      [plan.md: hub:files/1]"),
    ):  # fmt: skip
        assert plain(render(MessageLine(message, mine=mine))) == shown


def test_times_are_shown_in_the_local_time_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        with monkeypatch.context() as patch:
            patch.setenv("TZ", "IST-5:30")
            time.tzset()
            assert plain(render(MessageLine(posted(5)))).startswith("17:35 ")
    finally:
        time.tzset()


def test_mentions_are_highlighted_and_notices_of_the_hub_are_dim() -> None:
    line = MessageLine(posted(5, "hey @ann, not @anna"), mentions_me=True, me="ann")
    fragments = render(line)
    assert [text for style, text in fragments if style == "class:mention"] == ["@ann"]
    assert plain(fragments).endswith("hey @ann, not @anna")
    notice = render(MessageLine(posted(5, "limit reached", sender="hub", kind="system")))
    assert {style for style, _ in notice} == {"class:dim"}


def test_a_message_in_another_thread_is_one_line_within_the_width() -> None:
    long = OtherThreadLine(posted(5, "long\n" + "word " * 100), "direct_bob")
    ((style, text),) = render(long, 60)
    assert style == "class:dim"
    assert text.startswith("12:05 m5 [direct_bob] bob: long word")
    assert len(text) == 60
    assert text.endswith("…")
    ((style, text),) = render(OtherThreadLine(posted(5), "broadcast", mentions_me=True))
    assert style == "class:mentioned"
    assert text.startswith("! ")
    ((_, text),) = render(OtherThreadLine(posted(5), "broadcast", mine=True))
    assert text.endswith(" ✓")


def test_headings_days_and_notes_are_rendered_in_their_style() -> None:
    assert plain(render(ThreadHeading("direct_bob"))) == "── direct_bob ──"
    assert plain(render(DayHeading(date(2026, 3, 4)))) == "— Wed 04 March 2026 —"
    assert render(NoteLine("bad", "error")) == [("class:error", "bad")]
    assert render(NoteLine("fine\x1b")) == [("class:dim", "fine<U+001B>")]
