"""Passages of Markdown: their lines, headings and lengths."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from hubbub.agents.knowledge.index import LONGEST, Passage, passages, title_of
from tests.examples import examples

PAGE = """\
Before any heading.

# Returns #

General words.

## Damaged goods

Send a photo.

```sh
# this is code
```

## Empty

# Contact
"""


def headings(text: str) -> list[str]:
    return [passage.heading for passage in passages(text)]


def test_a_passage_has_its_line_and_the_headings_above_it() -> None:
    assert passages(PAGE) == [
        Passage("", 1, "Before any heading."),
        Passage("Returns", 5, "General words."),
        Passage("Returns > Damaged goods", 9, "Send a photo.\n\n```sh\n# this is code\n```"),
        Passage("Returns > Empty", 15, "Empty"),
        Passage("Contact", 17, "Contact"),
    ]
    assert headings("# A\n## B\ntext") == ["A > B"]
    assert headings("# A\n### B\nb\n## C\nc\n# D\nd") == ["A > B", "A > C", "D"]
    assert passages("") == passages("\n \n\t\n") == []
    assert title_of([]) == ""


def test_headings_of_both_styles_are_recognised_and_lookalikes_are_not() -> None:
    cases: list[tuple[str, list[str]]] = [
        ("A\n===\ntext", ["A"]),
        ("x\n\nB\n---\ntext", ["", "B"]),
        ("- item\n---\ntext", [""]),  # a list and a rule
        ("two\nlines\n---\ntext", [""]),
        ("| a |\n|---|\n| 1 |", [""]),
        ("---\ntext", [""]),
        ("text\n\n---\nmore", [""]),
        ("x" * 301 + "\n---", [""]),
    ]
    for text, expected in cases:
        assert headings(text) == expected
    for line, title in [
        ("# A", "A"), ("   ## A ##  ", "A"), ("# A#", "A#"), ("#", ""), ("# # #", "#"),
    ]:  # fmt: skip
        assert headings(f"{line}\ntext") == [title]
    for line in ["#A", "    # A", "####### A", "\\# A", "# " + "x" * 300]:
        assert headings(f"{line}\ntext") == [""]


def test_headings_in_fenced_code_are_ignored() -> None:
    for fence, closes in [("```", "```"), ("~~~", "~~~~"), ("````md", "````"), ("~~~ `x`", "~~~")]:
        assert headings(f"{fence}\n# no\n``\n# no\n{closes}\n# yes\ntext") == ["", "yes"]
    assert headings("````\n```\n# no\n````\n# yes\n```\n# no") == ["", "yes"]


def test_a_front_matter_title_becomes_the_top_heading() -> None:
    parts = passages('---\ntitle: "The shop"\ntags: [a]\n---\n\nHello.\n\n# Hours\n\nNine.')
    assert parts == [Passage("The shop", 6, "Hello."), Passage("The shop > Hours", 10, "Nine.")]
    assert title_of(parts) == "The shop"
    (rule,) = passages("---\ntext: without an end")
    assert rule.text == "---\ntext: without an end"


def test_a_long_section_is_split_between_paragraphs_or_words() -> None:
    paragraph = "word " * 100
    text = "\n\n".join([f"{n} {paragraph}" for n in range(8)])
    parts = passages(f"# A\n\n{text}")
    assert len(parts) > 3
    assert all(len(p.text) <= LONGEST and p.heading == "A" for p in parts)
    assert [p.text[0] for p in parts] == [p.text.split()[0] for p in parts]
    assert [int(p.text.split()[0]) for p in parts] == [0, 2, 4, 6]
    assert [p.line for p in parts] == [3, 7, 11, 15]
    parts = passages("word " * 1000)
    assert all(len(p.text) <= LONGEST and p.line == 1 for p in parts)
    assert " ".join(p.text for p in parts).split() == ["word"] * 1000


LINES = [
    *("# A", "## B", "###", "text", "", "---", "===", "```", "~~~", "x" * 1300),
    *("- item", "title: T"),
]
MARKDOWN = st.lists(st.sampled_from(LINES), max_size=30)


@settings(max_examples=examples(75))
@given(MARKDOWN)
def test_no_text_is_lost_and_no_passage_is_too_long(lines: list[str]) -> None:
    text = "\n".join(lines)
    parts = passages(text)
    assert all(0 < len(p.text) <= LONGEST for p in parts)
    assert [p.line for p in parts] == sorted(p.line for p in parts)
    assert all(1 <= p.line <= len(lines) for p in parts)
    everything = " ".join(f"{p.heading} {p.text}" for p in parts)
    front_matter = lines[:1] == ["---"]
    for word in ("A", "B", "text", "item"):
        if any(word in line for line in lines) and not front_matter:
            assert word in everything


@settings(max_examples=examples(50))
@given(st.text(max_size=400))
def test_any_text_can_be_read(text: str) -> None:
    assert all(p.text.strip() for p in passages(text))
