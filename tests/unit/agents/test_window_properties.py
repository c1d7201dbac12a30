"""Properties of any question that is cut to any window."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubbub.agents.prompt.budget import ContextRules, FittedRequest, WindowTooSmall
from hubbub.agents.prompt.tokens import TokenCounter, counter_for, question_tokens
from tests.examples import examples
from tests.unit.agents.windows import Case, assert_required_parts, cases, fitted

MORE = settings(max_examples=examples(40))


def fit(case: Case, rules: ContextRules) -> FittedRequest | None:
    """None if the required parts do not fit."""
    try:
        return fitted(case, rules)
    except WindowTooSmall:
        return None


@MORE
@given(cases())
@pytest.mark.behaviour("A-21")
def test_a_question_never_exceeds_its_window_nor_loses_required_parts(
    made: tuple[Case, ContextRules],
) -> None:
    case, rules = made
    request = fit(case, rules)
    if request is None:
        return
    assert request.window is not None
    assert rules.room is not None
    counted = question_tokens(rules.counter, request.question)
    assert counted <= rules.room
    assert sum(layer.tokens for layer in request.window.layers) == counted
    assert_required_parts(request.question, case)


@pytest.fixture(scope="module")
def exact() -> TokenCounter:
    return counter_for("gpt-4o")


@settings(max_examples=examples(20))
@given(made=cases(), part=st.floats(0.3, 1.0))
@pytest.mark.behaviour("A-21")
def test_a_question_counted_exactly_never_exceeds_its_window(
    exact: TokenCounter, made: tuple[Case, ContextRules], part: float
) -> None:
    case, rules = made
    whole = fitted(case, replace(rules, size=None, counter=exact)).question
    size = rules.reserve + int(question_tokens(exact, whole) * part) + 1
    tight = replace(rules, size=size, counter=exact)
    request = fit(case, tight)
    if request is not None:
        assert question_tokens(exact, request.question) <= size - rules.reserve
        assert_required_parts(request.question, case)


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


def _messages(request: FittedRequest) -> set[str]:
    return set(re.findall(r' id="(m\d+)"', request.question.messages[1]["content"] or ""))
