"""Whatever a question is made of and however small the window: what must hold of its fit."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubbub.agents.prompt.budget import ContextRules, FittedRequest, WindowTooSmall
from hubbub.agents.prompt.tokens import TokenCounter, counter_for, question_tokens
from tests.examples import examples
from tests.unit.agents.windows import Case, cases, fitted, taking

MORE = settings(max_examples=examples(40))


def fit(case: Case, rules: ContextRules) -> FittedRequest | None:
    """None: it does not fit, whatever is left out."""
    try:
        return fitted(case, rules)
    except WindowTooSmall:
        return None


@MORE
@given(cases())
@pytest.mark.behaviour("A-21")
def test_a_question_never_exceeds_its_window_and_never_loses_what_must_stay(
    made: tuple[Case, ContextRules],
) -> None:
    case, rules = made
    found = fit(case, rules)
    if found is None:
        return
    assert found.window is not None
    assert rules.room is not None
    counted = question_tokens(rules.counter, found.question)
    assert counted <= rules.room
    assert sum(layer.tokens for layer in found.window.layers) == counted
    taking(found.question, case)


@pytest.fixture(scope="module")
def exact() -> TokenCounter:
    return counter_for("gpt-4o")


@settings(max_examples=examples(20))
@given(made=cases(), part=st.floats(0.3, 1.0))
@pytest.mark.behaviour("A-21")
def test_nor_does_one_that_is_counted_by_the_models_vocabulary(
    exact: TokenCounter, made: tuple[Case, ContextRules], part: float
) -> None:
    case, rules = made
    whole = fitted(case, replace(rules, size=None, counter=exact)).question
    size = rules.reserve + int(question_tokens(exact, whole) * part) + 1
    tight = replace(rules, size=size, counter=exact)
    found = fit(case, tight)
    if found is not None:
        assert question_tokens(exact, found.question) <= size - rules.reserve
        taking(found.question, case)


@MORE
@given(made=cases(), more=st.integers(0, 400))
@pytest.mark.behaviour("A-21")
def test_a_larger_window_never_shows_less(made: tuple[Case, ContextRules], more: int) -> None:
    case, rules = made
    assert rules.size is not None
    less, larger = fit(case, rules), fit(case, replace(rules, size=rules.size + more))
    if less is None:
        return
    assert larger is not None
    assert less.window is not None
    assert larger.window is not None
    for small, large in zip(less.window.layers, larger.window.layers, strict=True):
        assert (small.name, small.tokens) <= (large.name, large.tokens)
        assert small.cut >= large.cut
    assert _messages(less) <= _messages(larger)


def _messages(found: FittedRequest) -> set[str]:
    return set(re.findall(r' id="(m\d+)"', found.question.messages[1]["content"] or ""))
