"""Wakes that are held until the backlog has arrived."""

from __future__ import annotations

from collections.abc import Coroutine

from hubbub.agents.catch_up import CatchUp
from hubbub.agents.inbox import Inbox, WakingMessage
from hubbub.client import Client, MemoryTransport
from hubbub.protocol.wire import Inlet, Outlet
from tests.unit.agents.builders import ME, message, pending, ready, wake

ONE, TWO = WakingMessage(message(1), wake(1)), WakingMessage(message(2), wake(2))


def no_hub(outlet: Outlet) -> Inlet:
    raise OSError("no hub is needed")


class TestCatchUp:
    def setup_method(self) -> None:
        client = Client(MemoryTransport(no_hub), ME, "agent", turns=True)
        self.released: list[WakingMessage] = []
        self.gap_fills = 0
        self.catch_up = CatchUp(client, Inbox(ME), self.fill_gaps, self.released.extend)

    def fill_gaps(self, work: Coroutine[object, object, None]) -> None:
        work.close()
        self.gap_fills += 1

    async def test_a_held_wake_that_ended_at_the_hub_is_dropped_after_a_reconnect(self) -> None:
        self.catch_up.begin(ready(0))
        self.catch_up.hold(ONE)
        self.catch_up.hold(TWO)
        back = ready(2, pending=(pending(TWO.message),), resumed=True)
        self.catch_up.begin(back)
        self.catch_up.expect_events(back)
        assert (self.released, self.gap_fills) == ([TWO], 0)

    async def test_a_held_wake_is_dropped_when_the_hub_ends_its_turn(self) -> None:
        self.catch_up.begin(ready(2))
        self.catch_up.hold(ONE)
        self.catch_up.hold(TWO)
        self.catch_up.drop({TWO.wake.turn})
        self.catch_up.expect_events(ready(2))
        assert (self.released, self.gap_fills) == ([ONE], 0)

    async def test_held_wakes_are_dropped_when_the_log_is_another_one(self) -> None:
        self.catch_up.begin(ready(2))
        self.catch_up.hold(ONE)
        other = ready(0)
        self.catch_up.begin(other)
        self.catch_up.expect_events(other)
        assert (self.released, self.gap_fills) == ([], 0)

    async def test_it_ends_once_with_the_event_at_the_head_or_the_hubs_signal(self) -> None:
        behind = ready(2).model_copy(update={"head": 5})
        self.catch_up.begin(behind)
        self.catch_up.end()
        assert self.gap_fills == 0, "nothing is expected yet"
        self.catch_up.expect_events(behind)
        self.catch_up.note(4)
        assert self.gap_fills == 0
        self.catch_up.note(5)
        self.catch_up.end()
        self.catch_up.note(9)
        assert self.gap_fills == 1
        self.catch_up.begin(behind)
        self.catch_up.expect_events(behind)
        self.catch_up.end()
        self.catch_up.end()
        assert self.gap_fills == 2
        self.catch_up.expect_events(behind)
        self.catch_up.close()
        self.catch_up.note(5)
        assert self.gap_fills == 2
