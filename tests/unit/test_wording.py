from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.strict_json import STRICT, NotJson, whole
from hubbub.wording import did_you_mean, near, shortened


def test_a_suggestion_ignores_case_and_scales_to_many_names() -> None:
    many = [f"worker-{n}" for n in range(5000)]
    for name, names, suggestion in (
        ("Claks", ["clerk", "clock", "clacks"], "; did you mean clacks?"),
        ("zzz", ["clerk"], "; see the list"),
        ("general", ["General"], "; did you mean General?"),
        ("worker-12x", many, "; did you mean worker-12?"),
        ("x" * 100_000, ["x" * 90_000], f"; did you mean {'x' * 90_000}?"),
    ):
        assert did_you_mean(name, names, "; see the list") == suggestion
    assert near("bob", ["bobby", "rob", "bo", "alice"], 2) == ["bo", "bobby"]


@given(st.text(), st.integers(1, 20))
def test_a_shortened_text_fills_the_limit_and_ends_with_an_ellipsis(text: str, most: int) -> None:
    cut = shortened(text, most)
    assert cut == text if len(text) <= most else cut == text[: most - 1] + "…"


@pytest.mark.parametrize(
    "text", ['{"a": 1, "b": 2, "a": 3}', "[NaN]", "-Infinity", "1e999", "9" * 401]
)
def test_ambiguous_or_non_finite_json_is_refused(text: str) -> None:
    with pytest.raises(NotJson):
        json.loads(text, **STRICT, parse_int=whole)
