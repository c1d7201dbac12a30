"""Every behaviour of tests/behaviours.py has a test, and every id in a test exists."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.behaviours import BEHAVIOURS

TESTS = Path(__file__).parent
_MARK, _ID = re.compile(r"\bmark\.behaviour\(([^)]*)\)"), re.compile(r'"([^"]*)"')


@cache
def named() -> list[tuple[str, str]]:
    """Every id in a marker, with its place."""
    return [pair for path in sorted(TESTS.rglob("test_*.py")) for pair in _named_in(path)]


def _named_in(path: Path) -> Iterator[tuple[str, str]]:
    text = path.read_text(encoding="utf-8")
    for mark in _MARK.finditer(text):
        place = f"{path.relative_to(TESTS)}:{text.count(chr(10), 0, mark.start()) + 1}"
        ids = _ID.findall(mark[1])
        assert ids, f"{place}: names no behaviour"
        assert not _ID.sub("", mark[1]).strip(", \n"), f"{place}: needs literal ids"
        yield from ((id, place) for id in ids)


def test_every_behaviour_has_a_test() -> None:
    proved = {id for id, _ in named()}
    assert [b for b in BEHAVIOURS if b.id not in proved] == []


def test_every_id_in_a_test_is_a_listed_behaviour() -> None:
    known = {behaviour.id for behaviour in BEHAVIOURS}
    assert [(id, place) for id, place in named() if id not in known] == []


def test_ids_and_sentences_are_unique() -> None:
    assert [id for id, count in Counter(b.id for b in BEHAVIOURS).items() if count > 1] == []
    assert len({b.sentence for b in BEHAVIOURS}) == len(BEHAVIOURS)


def test_a_behaviour_has_an_id_a_sentence_and_a_source() -> None:
    for behaviour in BEHAVIOURS:
        assert re.fullmatch(r"[A-Z]-[1-9][0-9]*", behaviour.id)
        assert behaviour.sentence.endswith("."), behaviour
        assert re.fullmatch(r"(\d-[a-z]+|issue)(, (\d-[a-z]+|issue))*", behaviour.source)
