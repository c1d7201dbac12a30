"""Threads in which an idle agent waits for further messages."""

from __future__ import annotations

import asyncio

import pytest

from hubbub.agents.runner import Debounce
from tests.interaction.peers import soon
from tests.unit.agents.builders import message

DESK = "channel.desk"


@pytest.mark.behaviour("H-67")
async def test_a_thread_is_held_from_its_first_wake_until_the_delay_ends() -> None:
    elapsed = asyncio.Event()
    debounce = Debounce(0.01, elapsed.set)
    debounce.on_wake(message(1, thread=DESK))
    debounce.on_wake(message(2, thread=DESK))
    assert set(debounce.held) == {DESK}
    async with soon():
        await elapsed.wait()
    assert not debounce.held


async def test_a_direct_message_from_a_person_or_closing_releases_threads() -> None:
    debounce = Debounce(60, lambda: None)
    debounce.on_wake(message(1, "zed", kind="agent", thread="dm.alice.bot.zed"))
    debounce.on_wake(message(2, thread=DESK))
    debounce.on_wake(message(3, thread="dm.alice.bot.zed"))
    assert set(debounce.held) == {DESK}
    debounce.close()
    assert not debounce.held


async def test_a_delay_of_zero_holds_no_thread() -> None:
    debounce = Debounce(0, lambda: None)
    debounce.on_wake(message(1, thread=DESK))
    assert not debounce.held
