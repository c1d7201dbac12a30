"""The number of processes that can die in one turn."""

from __future__ import annotations

import pytest

from hubbub.network.running_turns import MAX_DEATHS, NO_LIVES, TurnProcesses


def after(*begins: tuple[str | None, int], left: bool = False) -> TurnProcesses:
    """The turn after these processes (each with its count of sent messages) died or left."""
    processes = NO_LIVES
    for process, sent in begins:
        processes = processes.begun(process, sent)._replace(held=not left and process is not None)
    return processes


@pytest.mark.behaviour("R-7")
def test_the_third_death_of_a_process_ends_the_turn() -> None:
    assert not after(("a", 0), ("b", 0), ("c", 0)).over
    assert after(("a", 0), ("b", 0), ("c", 0), ("d", 0)).over
    assert MAX_DEATHS == 3


@pytest.mark.behaviour("R-8")
def test_resuming_leaving_and_unnamed_processes_are_not_deaths() -> None:
    assert after(*[("a", 0)] * 9).deaths == 0
    assert after(*[(process, 0) for process in "abcdef"], left=True).deaths == 0
    assert after(*[(None, 0)] * 9).deaths == 0


@pytest.mark.behaviour("R-8")
def test_new_messages_of_a_process_reset_the_count_of_deaths() -> None:
    assert after(("a", 0), ("b", 1), ("c", 2), ("d", 3), ("e", 4)).deaths == 1
    assert after(("a", 0), ("b", 1), ("c", 1), ("d", 1)).over
