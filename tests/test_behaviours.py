"""The manifest and the tests hold each other: see tests/behaviours.py."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.behaviours import BEHAVIOURS

TESTS = Path(__file__).parent


@cache
def named() -> list[tuple[str, str]]:
    """Every id that a marker names, with the place."""
    return [pair for path in sorted(TESTS.rglob("test_*.py")) for pair in _named_in(path)]


def _named_in(path: Path) -> Iterator[tuple[str, str]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call) or not _is_behaviour(node.func):
            continue
        place = f"{path.relative_to(TESTS)}:{node.lineno}"
        assert node.args, f"{place}: names no behaviour"
        for argument in node.args:
            assert isinstance(argument, ast.Constant), f"{place}: needs ids as they stand"
            yield str(argument.value), place


def _is_behaviour(called: ast.expr) -> bool:
    """Whether it is something's `mark.behaviour`; few calls are, and taking one apart is dear."""
    return (
        isinstance(called, ast.Attribute)
        and called.attr == "behaviour"
        and ast.unparse(called.value).endswith("mark")
    )


def test_every_behaviour_has_a_test() -> None:
    proved = {id for id, _ in named()}
    assert [b for b in BEHAVIOURS if b.id not in proved] == []


def test_no_test_names_a_behaviour_that_is_not_listed() -> None:
    known = {behaviour.id for behaviour in BEHAVIOURS}
    assert [(id, place) for id, place in named() if id not in known] == []


def test_an_id_stands_for_one_behaviour() -> None:
    assert [id for id, count in Counter(b.id for b in BEHAVIOURS).items() if count > 1] == []
    assert len({b.sentence for b in BEHAVIOURS}) == len(BEHAVIOURS)


def test_a_behaviour_is_a_sentence_with_a_source() -> None:
    for behaviour in BEHAVIOURS:
        assert re.fullmatch(r"[A-Z]-[1-9][0-9]*", behaviour.id)
        assert behaviour.sentence.endswith("."), behaviour
        assert re.fullmatch(r"(\d-[a-z]+|issue)(, (\d-[a-z]+|issue))*", behaviour.source)
