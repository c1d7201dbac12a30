"""When what had accumulated counts as here."""

from __future__ import annotations

import asyncio

from hubbub.agents.catch_up import Backlog


class Bell:
    def __init__(self) -> None:
        self.rung = 0
        self.event = asyncio.Event()

    def ring(self) -> None:
        self.rung += 1
        self.event.set()


async def test_it_is_over_with_the_event_at_the_head_or_when_the_hub_says_so_once() -> None:
    bell = Bell()
    backlog = Backlog(2, 5, bell.ring)
    backlog.note(4)
    assert (backlog.active, bell.rung) == (True, 0)
    backlog.note(5)
    assert (backlog.active, bell.rung) == (False, 1)
    bell = Bell()
    backlog = Backlog(2, 5, bell.ring)
    backlog.end()
    backlog.end()
    backlog.note(9)
    assert bell.rung == 1
    bell = Bell()
    assert not Backlog(5, 5, bell.ring).active
    assert bell.rung == 0
    bell = Bell()
    backlog = Backlog(2, 5, bell.ring)
    backlog.close()
    assert bell.rung == 0
    assert backlog.active
