from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_pages import Fact, find_fact, read_folder, read_page, words_of
from quantities import calculate

KNOWLEDGE = Path(__file__).parents[3] / "configs" / "knowledge"

PAGE = """# Rivers

Two *long* [rivers](http://x) and `on_direct`,
over two lines.

| River     | Length (km) | Mouth     |
|:----------|------------:|-----------|
| the Nile  | 6,650       | **delta** |
| Rhine     |             | delta     |

## Sources

- one
- two

```
# no heading

code
```
"""


def test_a_page_is_paragraphs_under_headings() -> None:
    passages = read_page("rivers.md", PAGE).passages
    assert [(p.heading, p.text) for p in passages] == [
        ("Rivers", "Two long rivers and on_direct, over two lines."),
        ("Sources", "- one - two"),
        ("Sources", "# no heading code"),
    ]


def test_a_table_is_facts_and_an_empty_cell_is_none() -> None:
    facts = read_page("rivers.md", PAGE).facts
    assert [(f.subject, f.attribute, f.value) for f in facts] == [
        ("the Nile", "Length", "6,650 km"),
        ("the Nile", "Mouth", "delta"),
        ("Rhine", "Mouth", "delta"),
    ]
    assert str(facts[0]) == "The length of the Nile is 6,650 km."


def test_a_fact_with_an_origin_reads_as_a_sentence() -> None:
    fact = Fact("Mars", "Distance from the Sun", "228.0 million km", "planets.md", "Planets")
    assert str(fact) == "The distance of Mars from the Sun is 228.0 million km."


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("what is the diameter of Jupiter?", "142,984 km"),
        ("Jupiter's diameter", "142,984 km"),
        ("the equatorial diameter of jupiter", "142,984 km"),
        ("radius of Jupiter", "69,911 km"),
        ("radius of Titan", "2,574.7 km"),
        ("how far is Mars from the Sun?", "228.0 million km"),
        ("distance of Mars from the Sun", "228.0 million km"),
        ("how high is Mount Everest?", "8,848.86 m"),
        ("how tall is Everest", "8,848.86 m"),
        ("the length of the Nile", "6,650 km"),
        ("how heavy is Earth", "5.97e24 kg"),
        ("diameter of the Sun", "1,391,400 km"),
        ("what planet does Titan belong to", None),
        ("the planet of Titan", "Saturn"),
        ("the speed of light", "299,792.458 km/s"),
        ("the density of Jupiter", None),
        ("the mass of the atmosphere of Jupiter", None),
        ("the diameter of Nibiru", None),
        ("Jupiter", None),
        ("", None),
    ],
)
def test_a_fact_is_found_only_if_it_is_what_was_asked(question: str, answer: str | None) -> None:
    fact = find_fact(read_folder(KNOWLEDGE).facts, question)
    assert (fact.value if fact else None) == answer


def test_every_number_in_the_shipped_tables_can_be_calculated_with() -> None:
    facts = [f for f in read_folder(KNOWLEDGE).facts if f.value[:1].isdigit()]
    assert len(facts) > 60
    for fact in facts:
        assert calculate(fact.value).value.exact, fact


def test_every_shipped_fact_is_found_by_its_own_sentence() -> None:
    facts = read_folder(KNOWLEDGE).facts
    for fact in facts:
        found = find_fact(facts, f"the {fact.attribute} of {fact.subject}")
        assert found is not None, fact
        assert (found.subject, found.value) == (fact.subject, fact.value)


def test_words_are_those_that_carry_meaning() -> None:
    assert words_of("What are the Diameters of Jupiter's moons?") == ["diameter", "jupiter", "moon"]
    assert words_of("glass, virus, axis, buses") == ["glass", "virus", "axis", "buse"]


@given(st.text(max_size=200) | st.text("|-# \n`abc()", max_size=200))
def test_any_text_is_a_page(text: str) -> None:
    page = read_page("x.md", text)
    assert all(p.text.strip() or p.text == "" for p in page.passages)
    assert all(f.subject and f.value for f in page.facts)
