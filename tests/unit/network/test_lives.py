"""How many processes a turn may cost."""

from __future__ import annotations

import pytest

from hubbub.network.running_turns import MAX_DEATHS, NO_LIVES, TurnProcesses


def after(*begins: tuple[str | None, int], left: bool = False) -> TurnProcesses:
    """The turn after processes have begun it (each with what had been sent), and died or left."""
    lives = NO_LIVES
    for life, said in begins:
        lives = lives.begun(life, said)._replace(held=not left and life is not None)
    return lives


@pytest.mark.behaviour("R-7")
def test_three_processes_that_die_in_a_turn_end_it_and_two_do_not() -> None:
    assert not after(("a", 0), ("b", 0), ("c", 0)).over
    assert after(("a", 0), ("b", 0), ("c", 0), ("d", 0)).over
    assert MAX_DEATHS == 3


@pytest.mark.behaviour("R-8")
def test_a_process_that_begins_again_leaves_in_order_or_has_no_name_is_no_death() -> None:
    assert after(*[("a", 0)] * 9).deaths == 0
    assert after(*[(life, 0) for life in "abcdef"], left=True).deaths == 0
    assert after(*[(None, 0)] * 9).deaths == 0


@pytest.mark.behaviour("R-8")
def test_a_process_that_has_said_something_new_begins_the_count_anew() -> None:
    assert after(("a", 0), ("b", 1), ("c", 2), ("d", 3), ("e", 4)).deaths == 1
    assert after(("a", 0), ("b", 1), ("c", 1), ("d", 1)).over
