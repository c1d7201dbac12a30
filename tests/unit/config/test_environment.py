"""References to environment variables in texts."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.config.environment import MissingVariable, expand, refers

ENVIRON = {"NAME": "ann", "EMPTY": "", "WITH_REF": "${NAME}"}


@pytest.mark.behaviour("L-2")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("${NAME}", "ann"),
        ("hello ${NAME}!", "hello ann!"),
        ("${NAME}${NAME}", "annann"),
        ("${MISSING:-bob}", "bob"),
        ("${MISSING:-}", ""),
        ("${EMPTY}", ""),
        ("${EMPTY:-bob}", "bob"),
        ("${MISSING:-http://h:1/v1}", "http://h:1/v1"),
        ("$NAME and $$", "$NAME and $$"),
        ("$${NAME}", "${NAME}"),
        ("$$${NAME}", "$${NAME}"),
        ("${MISSING:-${NAME}}", "ann"),
        ("${MISSING:-a ${GONE:-b${EMPTY:-c}}d} ${NAME}", "a bcd ann"),
        ("${NAME:-${GONE}}", "ann"),
        ("${MISSING:-$${NAME}}", "${NAME}"),
        ('${MISSING:-{"a": {}}}', '{"a": {}}'),
        ('{"key": "${NAME}"}', '{"key": "ann"}'),
    ],
)
def test_references_are_replaced_and_the_rest_stays(text: str, expected: str) -> None:
    assert expand(text, ENVIRON) == expected


def test_the_value_of_a_variable_is_not_expanded_again() -> None:
    assert expand("${WITH_REF}", ENVIRON) == "${NAME}"


@pytest.mark.behaviour("L-2")
def test_a_missing_variable_is_named_with_its_remedy() -> None:
    with pytest.raises(MissingVariable, match=r"variable GONE is not set.*\$\{GONE:-default\}"):
        expand("a ${GONE} b", ENVIRON)


@pytest.mark.parametrize("text", ["${}", "${1A}", "${A B}", "${A-b}", "${A:b}"])
def test_what_is_no_reference_is_an_error_that_shows_it(text: str) -> None:
    with pytest.raises(MissingVariable) as caught:
        expand(text, ENVIRON)
    assert text in str(caught.value)
    assert "${NAME:-default}" in str(caught.value)


@pytest.mark.behaviour("L-2")
def test_a_default_that_is_needed_is_looked_at() -> None:
    with pytest.raises(MissingVariable, match="variable GONE is not set"):
        expand("${MISSING:-${GONE}}", ENVIRON)


@pytest.mark.parametrize("text", ["a ${NAME", "${A:-${NAME}", "${A:-{}", "${"])
def test_a_reference_that_is_never_closed_is_an_error_that_shows_it(text: str) -> None:
    with pytest.raises(MissingVariable) as caught:
        expand(text, ENVIRON)
    assert f"'{text[text.index('$') :]}' is never closed" in str(caught.value)


def test_references_cannot_stand_in_each_other_without_end() -> None:
    with pytest.raises(MissingVariable, match="too deep"):
        expand("${A:-" * 500 + "}" * 500, {})


@given(st.text(alphabet="aN ${}:-", max_size=60))
def test_whatever_stands_there_is_replaced_or_refused(text: str) -> None:
    with contextlib.suppress(MissingVariable):
        assert "${" not in expand(text, {"N": "ann"}) or "$${" in text


@given(st.text(alphabet="ab ${}:-N"))
def test_a_text_without_references_is_never_changed(text: str) -> None:
    if not refers(text):
        assert expand(text, {}) == text


@given(st.text(), st.text(alphabet=st.characters(exclude_characters="$")))
def test_whatever_a_variable_holds_arrives_unchanged(value: str, around: str) -> None:
    assert expand(f"{around}${{V}}{around}", {"V": value}) == f"{around}{value}{around}"
