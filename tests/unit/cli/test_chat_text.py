"""Text of others, colours, and how lines look."""

from __future__ import annotations

import unicodedata
from datetime import UTC, date, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.cli.chat.colours import PALETTE, colour_of
from hubbub.cli.chat.lines import Day, Elsewhere, Note, Opened, Said
from hubbub.cli.chat.render import STYLES, plain, render
from hubbub.cli.chat.text import clip, columns, one_line, visible, wrap
from hubbub.protocol.messages import Attachment, Quote
from tests.unit.cli.chatting import said

BIDI = [*map(chr, range(0x202A, 0x202F)), *map(chr, range(0x2066, 0x206A)), "\u200e", "\u061c"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain äöü 漢字 🙂", "plain äöü 漢字 🙂"),
        ("\x1b[31mred", "<U+001B>[31mred"),
        ("\x9b31m", "<U+009B>31m"),
        ("ring\a", "ring<U+0007>"),
        ("over\rwritten", "over<U+000D>written"),
        ("dos\r\nline", "dos\nline"),
        ("a\tb", "a    b"),
        ("exe\u202egpj", "exe<U+202E>gpj"),
        ("a\u2028b", "a<U+2028>b"),
        ("\u200b", "<U+200B>"),
        ("hi\U000e0068", "hi<U+E0068>"),
        ("family 👨‍👩‍👧", "family 👨‍👩‍👧"),
    ],
)
def test_control_and_bidi_characters_become_visible(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.behaviour("U-2")
@given(st.text())
def test_nothing_that_steers_a_terminal_comes_through(text: str) -> None:
    shown = visible(text)
    for character in shown:
        assert character == "\n" or unicodedata.category(character) not in ("Cc", "Cs", "Zl", "Zp")
        assert character not in BIDI


@given(st.text())
def test_one_line_is_one_line(text: str) -> None:
    assert len(one_line(text).splitlines()) <= 1


@given(st.text(alphabet=st.characters(exclude_categories=("Cc", "Cs"))), st.integers(1, 40))
def test_a_clipped_text_is_a_beginning_and_not_wider(text: str, width: int) -> None:
    cut = clip(text, width)
    assert cut == text or (cut.endswith("…") and text.startswith(cut[:-1]))
    columns = sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in cut
    )
    assert columns <= width


@pytest.mark.parametrize("width", [100, 10**6])
def test_a_long_text_is_wrapped_in_one_pass(width: int) -> None:
    """Counting all columns again at each word took minutes for this."""
    text = "é " + "lorem " * 40_000
    wrapped = wrap(text, width, "  ")
    assert wrapped.split() == text.split()
    assert all(columns(line) <= width for line in wrapped.split("\n"))
    assert wrap(" " * 60_000 + "é" + " " * 60_000, 10, "").strip() == "é"


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("one two three", 20, "one two three"),
        ("one two three", 9, "one two\n  three"),
        ("one two three", 6, "one\n  two\n  three"),
        ("https://a.b/long one", 6, "https://a.b/long\n  one"),
        ("a\n\n  code  here", 20, "a\n  \n    code  here"),
        ("漢字 漢字", 6, "漢字\n  漢字"),
        ("", 5, ""),
    ],
)
def test_text_wraps_between_words(text: str, width: int, shown: str) -> None:
    assert wrap(text, width, "  ") == shown


def test_what_stands_before_the_text_takes_room_on_the_first_line() -> None:
    assert wrap("one two three", 9, "", taken=4) == "one\ntwo three"


@given(st.text(alphabet="ab 漢\n", max_size=80), st.integers(8, 30), st.integers(0, 6))
def test_wrapping_changes_only_white_space_and_keeps_to_the_width(
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


FOREGROUNDS = {part[3:] for style in STYLES.values() for part in style.split() if "fg:" in part}


@pytest.mark.parametrize("colour", sorted({*PALETTE, *FOREGROUNDS}))
def test_every_colour_is_readable_on_black_and_on_white(colour: str) -> None:
    light = luminance(colour)
    assert (light + 0.05) / 0.05 >= 3
    assert 1.05 / (light + 0.05) >= 3


def test_a_participant_always_has_the_same_colour() -> None:
    assert colour_of("alice") == colour_of("alice") == "#af5f5f"
    assert len({colour_of(f"agent{n}") for n in range(100)}) == len(PALETTE)


def test_a_message_shows_time_id_sender_and_text() -> None:
    assert plain(render(Said(said(5, "hello")), UTC)) == "12:05 m5 bob: hello"


def test_times_are_local() -> None:
    zone = timezone(timedelta(hours=5, minutes=30))
    assert plain(render(Said(said(5, "hello")), zone)).startswith("17:35 ")


def test_ones_own_message_shows_that_it_was_sent() -> None:
    assert plain(render(Said(said(5, "hello", sender="ann"), mine=True), UTC)).endswith("hello ✓")


def test_further_lines_of_a_message_are_indented() -> None:
    assert plain(render(Said(said(5, "one\ntwo\n")), UTC)) == "12:05 m5 bob: one\n      two"


def test_json_content_shows_as_json_and_its_representation_if_it_has_one() -> None:
    message = said(5, {"sum": 4})
    assert plain(render(Said(message), UTC)).endswith('bob: {"sum":4}')
    better = message.model_copy(update={"text_representation": "four"})
    assert plain(render(Said(better), UTC)).endswith("bob: four")


def test_quotes_and_attachments_are_shown() -> None:
    message = said(5, "see").model_copy(
        update={
            "quote": Quote(message_id="m1", text="what\nwas"),
            "attachments": (Attachment(name="plan.md", uri="hub:files/1"),),
        }
    )
    assert plain(render(Said(message), UTC)).split("\n") == [
        "12:05 m5 bob: > what was",
        "      see",
        "      [plan.md: hub:files/1]",
    ]


def test_a_mention_of_the_reader_is_set_off() -> None:
    line = Said(said(5, "hey @ann, not @anna"), mentions_me=True, me="ann")
    fragments = render(line, UTC)
    assert ("class:mention", "@ann") in fragments
    assert sum(style == "class:mention" for style, _ in fragments) == 1
    assert plain(fragments).endswith("hey @ann, not @anna")


def test_a_notice_of_the_network_is_dim_and_has_no_colour() -> None:
    fragments = render(Said(said(5, "limit reached", sender="hub", kind="system")), UTC)
    assert {style for style, _ in fragments} == {"class:dim"}


def test_a_message_elsewhere_is_one_dim_line_that_fits() -> None:
    line = Elsewhere(said(5, "long\n" + "word " * 100), "direct_bob")
    ((style, text),) = render(line, UTC, 60)
    assert style == "class:dim"
    assert text.startswith("12:05 m5 [direct_bob] bob: long word")
    assert len(text) == 60
    assert text.endswith("…")


def test_a_mention_elsewhere_is_not_dim() -> None:
    ((style, text),) = render(Elsewhere(said(5), "broadcast", mentions_me=True), UTC)
    assert style == "class:mentioned"
    assert text.startswith("! ")


def test_ones_own_message_elsewhere_shows_that_it_was_sent() -> None:
    ((_, text),) = render(Elsewhere(said(5), "broadcast", mine=True), UTC)
    assert text.endswith(" ✓")


@pytest.mark.behaviour("U-2")
@given(st.text(), st.text(), st.text())
def test_whatever_others_call_themselves_and_say_stays_harmless(
    name: str, text: str, quote: str
) -> None:
    message = said(5, text).model_copy(
        update={"sender_id": name, "quote": Quote(message_id="m1", text=quote)}
    )
    for line in (Said(message, False, True, "ann"), Elsewhere(message, "broadcast")):
        shown = plain(render(line, UTC))
        assert all(c == "\n" or unicodedata.category(c) != "Cc" for c in shown)


def test_headers_days_and_notes() -> None:
    assert plain(render(Opened("direct_bob"))) == "── direct_bob ──"
    assert plain(render(Day(date(2026, 3, 4)))) == "— Wed 04 March 2026 —"
    assert render(Note("bad", "error")) == [("class:error", "bad")]
    assert render(Note("fine\x1b")) == [("class:dim", "fine<U+001B>")]
