"""Messages as they are drawn in the full-screen client."""

from __future__ import annotations

from datetime import UTC, date

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.segment import Segment

from hubbub.cli.chat.text import visible
from hubbub.cli.full.draw import MOST_MARKDOWN, Painter
from hubbub.cli.full.markdown import LANGUAGES, MOST_CODE
from hubbub.cli.full.outbox import Sending
from hubbub.cli.full.timeline import Beginning, DayLine, Earlier, NewLine, Pending, Post
from hubbub.protocol.messages import Attachment, Message, Quote
from tests.examples import examples
from tests.unit.cli.chatting import drawn, said, text_of


def post(text: object, **more: object) -> Post:
    return Post(said(7, text, **more), together=False)  # type: ignore[arg-type]


def segments(text: str, *, dark: bool = True) -> list[Segment]:
    lines = Painter("ann", UTC, dark=dark).lines(post(text), 60)
    return [segment for line in lines for segment in line]


def body(text: str, width: int = 60) -> list[str]:
    """What is drawn of a text below its head."""
    return drawn(post(text), width)[2:]


def test_a_message_has_a_gap_a_head_and_its_text() -> None:
    assert drawn(post("hello")) == ["", "bob  12:07  m7", "hello"]


def test_a_message_that_goes_on_has_no_gap_and_no_name() -> None:
    assert drawn(Post(said(7), together=True)) == ["12:07  m7", "hi"]


def test_the_state_of_ones_own_message_stands_beside_its_time() -> None:
    assert drawn(Post(said(7, sender="ann"), False, "✓✓ bob"))[1] == "ann  12:07  m7  ✓✓ bob"


def test_a_notice_of_the_hub_is_one_quiet_line() -> None:
    notice = said(7, "budget spent", sender="hub", kind="system")
    assert drawn(Post(notice, together=False)) == ["", "12:07 m7 budget spent"]


def test_replies_are_counted_below() -> None:
    assert drawn(Post(said(7), False, replies=1))[-1] == "↳ 1 reply"
    assert drawn(Post(said(7), False, replies=3, new_replies=2))[-1] == "↳ 3 replies, 2 new"


def test_a_quotation_and_attachments_are_shown() -> None:
    message = said(7, "yes").model_copy(
        update={
            "quote": Quote(message_id="m3", text="shall\nwe?"),
            "attachments": (Attachment(name="a.pdf", uri="file:///a.pdf"),),
        }
    )
    assert drawn(Post(message, False))[2:] == ["▎m3: shall we?", "yes", "[a.pdf: file:///a.pdf]"]


def test_json_is_shown_as_json() -> None:
    assert body_of({"a": [1], "b": None}) == [
        "{",
        '  "a": [',
        "    1",
        "  ],",
        '  "b": null',
        "}",
    ]
    assert "```" not in "\n".join(body_of(["``` out of the block"]))


def body_of(content: object) -> list[str]:
    return drawn(post(content))[2:]


def test_a_text_representation_is_shown_in_place_of_json() -> None:
    message = said(7, {"a": 1}).model_copy(update={"text_representation": "a is 1"})
    assert drawn(Post(message, False))[2:] == ["a is 1"]


def test_what_stands_between_messages() -> None:
    assert drawn(Beginning("#general")) == ["This is the beginning of #general."]
    above = drawn(Beginning("#general › m3", "bob: shall\nwe?"))
    assert above == ["This is the beginning of #general › m3.", "▎bob: shall we?"]
    assert drawn(Earlier())[0].strip() == "↑ earlier messages"
    assert drawn(NewLine())[0].strip() == "── new ──"
    assert drawn(DayLine(date(2026, 3, 4)))[0].strip() == "── Wednesday, 04 March 2026 ──"


def test_a_message_on_its_way_says_so() -> None:
    sending = Sending("c", "broadcast", "hello")
    assert drawn(Pending(sending)) == ["", "ann  sending…", "hello"]


def test_a_message_that_was_refused_says_why() -> None:
    lines = drawn(Pending(Sending("c", "broadcast", "hello", failed="too\x1b long")))
    assert lines == ["", "ann", "hello", "✗ not sent: too<U+001B> long"]


# Markdown -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("# Title\ntext", ["Title", "", "text"]),
        ("one\ntwo", ["one", "two"]),
        ("a *b* **c** `d` ~~e~~", ["a b c d e"]),
        ("- a\n- b", [" • a", " • b"]),
        ("1. a\n2. b", [" 1 a", " 2 b"]),
        ("> quoted", ["▌ quoted"]),
        ("```python\nx = 1\n```", ["x = 1"]),
        ("[there](https://a.example)", ["there (https://a.example)"]),
    ],
)
def test_markdown_is_rendered(text: str, lines: list[str]) -> None:
    assert body(text) == lines


def test_code_is_highlighted_on_dark_and_on_light() -> None:
    text = "```python\ndef f():\n    return 1\n```"
    for dark in (True, False):
        styles = {
            str(s.style.color) for s in segments(text, dark=dark) if s.style and s.text.strip()
        }
        assert len(styles) > 4


def test_code_stands_on_the_ground_of_the_message() -> None:
    grounds = {s.style.bgcolor for s in segments("```python\nx = 1\n```") if s.style}
    assert grounds == {None}


def test_only_known_languages_are_highlighted() -> None:
    assert "python" in LANGUAGES
    code = "x = 'a'"
    for name, known in (("python", True), ("PYTHON", True), ("brainfuck", False), ("../x", False)):
        highlighted = len([s for s in segments(f"```{name}\n{code}\n```") if s.text.strip()])
        plain = len([s for s in segments(f"```\n{code}\n```") if s.text.strip()])
        assert (highlighted > plain) is known, name


def test_long_code_is_shown_plain() -> None:
    code = "x = 'a'\n" * (MOST_CODE // 8 + 1)
    lines = Painter("ann", UTC).lines(post(f"```python\n{code}```"), 60)
    assert text_of(lines)[2] == "x = 'a'"
    assert len([segment for segment in lines[2] if segment.text.strip()]) == 1


def test_a_very_long_message_is_not_read_as_markdown() -> None:
    assert body("*a* " * MOST_MARKDOWN)[0].startswith("*a* *a*")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2Jgone", "<U+001B>[2Jgone"),
        ("&#8238;live", "<U+202E>live"),
        ("`&#x202e;`", "&#x202e;"),
        ("```\n\x07\n```", "<U+0007>"),
        ("[a](https://x.example/&#8238;b)", "a (https://x.example/%E2%80%AEb)"),
        ("<script>alert(1)</script>", "<script>alert(1)</script>"),
        ("a <b onclick=x>c</b>", "a <b onclick=x>c</b>"),
        ("![pixel](https://x.example/1.gif)", "!pixel (https://x.example/1.gif)"),
        ("[x](javascript:alert(1))", "[x](javascript:alert(1))"),
        ("a\u200bb", "a<U+200B>b"),
    ],
)
def test_nothing_in_a_message_steers_or_hides(text: str, shown: str) -> None:
    assert " ".join(body(text)) == shown


hostile = st.text(
    st.one_of(
        st.sampled_from("\x00\x07\x1b\x9b\u202e\u2066\u200b\r\n\t `*_#>-[]()!<>&|~:;0123456789ab"),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=80,
)
marked = st.lists(
    st.one_of(
        hostile,
        st.sampled_from(
            ["\n> ", "\n- ", "\n1. ", "\n# ", "```python\n", "\n```\n", "| a | b |\n|---|---|\n| ",
             "&#27;", "&#8238;", "&#155;", "**", "[x](", ")", "![", "@ann ", "    ", "\n\n", "~~"]
        ),
    ),
    max_size=12,
).map("".join)  # fmt: skip


@pytest.mark.behaviour("U-2")
@settings(max_examples=examples(150), deadline=None)
@given(text=marked, width=st.integers(8, 120))
@example(text="> " * 40 + "deep", width=8)
@example(text="- " * 40 + "deep", width=8)
@example(text="|a" * 60 + "|\n" + "|-" * 60 + "|\n" + "|b" * 60, width=8)
def test_whatever_is_written_is_drawn_in_its_width_and_without_control_characters(
    text: str, width: int
) -> None:
    message = said(7, text, mentions=("ann",))
    lines = Painter("ann", UTC).lines(Post(message, False, mentions_me=True), width)
    for line in lines:
        drawn = "".join(segment.text for segment in line)
        assert visible(drawn) == drawn
        assert "\n" not in drawn
        assert cell_len(drawn) == width
        assert not any(segment.style and segment.style.link for segment in line)
        assert not any(segment.control for segment in line)


def test_a_mention_of_the_reader_is_set_off() -> None:
    message: Message = said(7, "@ann and @anna, `@ann`", mentions=("ann",))
    lines = Painter("ann", UTC).lines(Post(message, False, mentions_me=True), 60)
    marked = [s.text for line in lines for s in line if s.style and s.style.reverse]
    assert marked == ["@ann", "@ann"]
