"""Messages as they are drawn in the full-screen client."""

from __future__ import annotations

from datetime import UTC, date

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.segment import Segment
from syrupy.assertion import SnapshotAssertion

from hubbub.cli.chat.text import visible
from hubbub.cli.full.draw import MOST_MARKDOWN, Painter
from hubbub.cli.full.markdown import LANGUAGES, MOST_CODE
from hubbub.cli.full.outbox import Sending
from hubbub.cli.full.timeline import Beginning, Block, DayLine, Earlier, NewLine, Pending, Post
from hubbub.protocol.messages import Attachment, Quote
from tests.examples import examples
from tests.unit.cli.chatting import drawn, said, text_of


def post(text: object) -> Post:
    return Post(said(7, text), together=False)  # type: ignore[arg-type]


def segments(text: str, *, dark: bool = True) -> list[Segment]:
    lines = Painter("ann", UTC, dark=dark).lines(post(text), 60)
    return [segment for line in lines for segment in line]


def body(content: object) -> list[str]:
    """What is drawn of a content below its head."""
    return drawn(post(content))[2:]


def test_everything_in_a_conversation_has_its_looks(snapshot: SnapshotAssertion) -> None:
    quoting = said(7, "yes").model_copy(
        update={
            "quote": Quote(message_id="m3", text="shall\nwe?"),
            "attachments": (Attachment(name="a.pdf", uri="file:///a.pdf"),),
        }
    )
    as_text = said(7, {"a": 1}).model_copy(update={"text_representation": "a is 1"})
    notice = said(7, "budget spent", sender="hub", kind="system")
    blocks: dict[str, Block] = {
        "a message": post("hello"),
        "that goes on": Post(said(7), together=True),
        "one's own": Post(said(7, sender="ann"), False, "✓✓ bob"),
        "a notice": Post(notice, together=False),
        "a reply": Post(said(7), False, replies=1),
        "new replies": Post(said(7), False, replies=3, new_replies=2),
        "a quotation and an attachment": Post(quoting, False),
        "JSON": post({"a": [1], "b": None}),
        "JSON out of its block": post(["``` out of the block"]),
        "JSON as text": Post(as_text, False),
        "the beginning": Beginning("#general"),
        "of replies": Beginning("#general › m3", "bob: shall\nwe?"),
        "earlier": Earlier(),
        "new": NewLine(),
        "a day": DayLine(date(2026, 3, 4)),
        "on its way": Pending(Sending("c", "broadcast", "hello")),
        "refused": Pending(Sending("c", "broadcast", "hello", failed="too\x1b long")),
    }
    assert {name: "\n".join(drawn(block)) for name, block in blocks.items()} == snapshot


def test_markdown_is_rendered_and_steers_or_hides_nothing(snapshot: SnapshotAssertion) -> None:
    texts = (
        "# Title\ntext", "one\ntwo", "a *b* **c** `d` ~~e~~", "- a\n- b", "1. a\n2. b", "> quoted",
        "```python\nx = 1\n```", "[there](https://a.example)",
        "\x1b[2Jgone", "&#8238;live", "`&#x202e;`", "```\n\x07\n```",
        "[a](https://x.example/&#8238;b)", "<script>alert(1)</script>", "a <b onclick=x>c</b>",
        "![pixel](https://x.example/1.gif)", "[x](javascript:alert(1))", "a\u200bb",
    )  # fmt: skip
    assert {visible(text): "\n".join(body(text)) for text in texts} == snapshot


def test_known_languages_are_highlighted_on_the_ground_of_the_message() -> None:
    code = "def f():\n    return 'a'"
    for dark in (True, False):
        found = segments(f"```python\n{code}\n```", dark=dark)
        assert len({str(s.style.color) for s in found if s.style and s.text.strip()}) > 4
        assert {s.style.bgcolor for s in found if s.style} == {None}
    assert "python" in LANGUAGES
    plain = len([s for s in segments(f"```\n{code}\n```") if s.text.strip()])
    for name, known in (("python", True), ("PYTHON", True), ("brainfuck", False), ("../x", False)):
        highlighted = len([s for s in segments(f"```{name}\n{code}\n```") if s.text.strip()])
        assert (highlighted > plain) is known, name


def test_what_is_very_long_is_shown_plain() -> None:
    code = "x = 'a'\n" * (MOST_CODE // 8 + 1)
    lines = Painter("ann", UTC).lines(post(f"```python\n{code}```"), 60)
    assert text_of(lines)[2] == "x = 'a'"
    assert len([segment for segment in lines[2] if segment.text.strip()]) == 1
    assert body("*a* " * MOST_MARKDOWN)[0].startswith("*a* *a*")


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
@settings(max_examples=examples(80), deadline=None)
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
    message = said(7, "@ann and @anna, `@ann`", mentions=("ann",))
    lines = Painter("ann", UTC).lines(Post(message, False, mentions_me=True), 60)
    marked = [s.text for line in lines for s in line if s.style and s.style.reverse]
    assert marked == ["@ann", "@ann"]
