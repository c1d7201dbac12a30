"""Threads in which an idle agent waits for more."""

from __future__ import annotations

import pytest

from hubbub.agents.runner import Debounce
from tests.interaction.peers import eventually
from tests.unit.agents.builders import message

DESK = "channel.desk"


@pytest.mark.behaviour("H-67")
async def test_a_thread_is_held_from_its_first_wake_on_until_time_is_up() -> None:
    over: list[str] = []
    debounce = Debounce(0.01, lambda: over.append("over"))
    debounce.on_wake(message(1, thread=DESK))
    debounce.on_wake(message(2, thread=DESK))
    assert set(debounce.held) == {DESK}
    await eventually(lambda: over == ["over"])
    assert not debounce.held


async def test_a_persons_direct_message_sets_its_thread_free() -> None:
    debounce = Debounce(60, lambda: None)
    debounce.on_wake(message(1, "zed", kind="agent", thread="dm.alice.bot.zed"))
    debounce.on_wake(message(2, thread=DESK))
    debounce.on_wake(message(3, thread="dm.alice.bot.zed"))
    assert set(debounce.held) == {DESK}
    debounce.close()
    assert not debounce.held
    debounce = Debounce(0, lambda: None)
    debounce.on_wake(message(1, thread=DESK))
    assert not debounce.held
