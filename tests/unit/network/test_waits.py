"""The graph of waits never has a cycle."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.errors import OperationError
from hubbub.network.services.waits import Wait, Waits

NAMES = st.sampled_from("abcdef")
ASKS = st.tuples(st.just("ask"), NAMES, NAMES)
ENDS = st.tuples(st.just("end"), st.integers(0, 30), st.none())
ANSWERS = st.tuples(st.just("answer"), NAMES, NAMES)
LEAVES = st.tuples(st.just("leave"), NAMES, st.none())
OVER = st.tuples(st.just("over"), NAMES, st.integers(0, 3))


def reaches(edges: set[tuple[str, str]], start: str, goal: str) -> bool:
    seen, queue = {start}, [start]
    for name in queue:
        for asker, awaited in edges:
            if asker == name and awaited not in seen:
                seen.add(awaited)
                queue.append(awaited)
    return goal in seen


@pytest.mark.behaviour("H-55")
@given(st.lists(st.one_of(ASKS, ENDS, ANSWERS, LEAVES, OVER), max_size=60))
def test_a_wait_is_refused_only_if_it_closes_a_cycle(
    steps: list[tuple[str, object, object]],
) -> None:
    waits, model = Waits(), dict[int, Wait]()
    for n, (action, one, other) in enumerate(steps):
        edges = {(wait.asker, wait.awaited) for wait in model.values()}
        if action == "ask":
            wait = Wait(str(one), str(other), f"t{n % 4}")
            if reaches(edges, wait.awaited, wait.asker):
                with pytest.raises(OperationError) as refused:
                    waits.begin(n, wait)
                assert_cycle_reported(refused.value, wait, edges)
            else:
                waits.begin(n, wait)
                model[n] = wait
        elif action == "end":
            assert waits.end(one) == model.pop(one, None)  # type: ignore[call-overload]
        elif action == "answer":
            waits.answered(str(one), [str(other)])
            model = {k: w for k, w in model.items() if (w.awaited, w.asker) != (one, other)}
        elif action == "leave":
            waits.left(str(one))
            model = {k: w for k, w in model.items() if w.asker != one}
        else:
            waits.turn_over(str(one), f"t{other}")
            model = {k: w for k, w in model.items() if (w.asker, w.turn) != (one, f"t{other}")}
        assert waits.held == model
        edges = {(wait.asker, wait.awaited) for wait in model.values()}
        assert not any(reaches(edges, awaited, asker) for asker, awaited in edges)


def assert_cycle_reported(error: OperationError, wait: Wait, edges: set[tuple[str, str]]) -> None:
    cycle = error.details["cycle"]
    assert isinstance(cycle, list)
    assert cycle[0] == cycle[-1] == wait.asker
    assert cycle[1] == wait.awaited
    assert all(pair in edges for pair in pairwise(cycle[1:]))
    assert " -> ".join(cycle) in error.message


def test_a_wait_can_be_renamed() -> None:
    waits = Waits()
    waits.begin("draft", Wait("a", "b"))
    waits.rename("draft", "m1")
    waits.rename("unknown", "m2")
    assert waits.held == {"m1": Wait("a", "b")}
    assert waits.end("m1") == Wait("a", "b")
    waits.begin("m3", Wait("b", "a"))
