"""What is held until all that has accumulated is here."""

from __future__ import annotations

from collections.abc import Coroutine

from hubbub.agents.catch_up import CatchUp
from hubbub.agents.inbox import Inbox, WakingMessage
from hubbub.client import Client, MemoryTransport
from hubbub.protocol.wire import Inlet, Outlet
from tests.unit.agents.builders import ME, message, pending, ready, wake

ONE, TWO = WakingMessage(message(1), wake(1)), WakingMessage(message(2), wake(2))


def nobody(outlet: Outlet) -> Inlet:
    raise OSError("no hub is needed")


def nothing_to_run(work: Coroutine[object, object, None]) -> None:
    work.close()
    raise AssertionError("nothing is missing")


class TestHeld:
    def setup_method(self) -> None:
        client = Client(MemoryTransport(nobody), ME, "agent", turns=True)
        self.let_go: list[WakingMessage] = []
        self.it = CatchUp(client, Inbox(ME), nothing_to_run, self.let_go.extend)

    async def test_what_has_ended_at_the_hub_meanwhile_is_forgotten(self) -> None:
        self.it.begin(ready(0))
        self.it.hold(ONE)
        self.it.hold(TWO)
        back = ready(2, pending=(pending(TWO.message),), resumed=True)
        self.it.begin(back)
        self.it.expect_events(back)
        assert self.let_go == [TWO]

    async def test_what_the_hub_ends_while_it_is_held_is_dropped(self) -> None:
        self.it.begin(ready(2))
        self.it.hold(ONE)
        self.it.hold(TWO)
        self.it.drop({TWO.wake.turn})
        self.it.expect_events(ready(2))
        assert self.let_go == [ONE]

    async def test_another_log_has_nothing_of_it(self) -> None:
        self.it.begin(ready(2))
        self.it.hold(ONE)
        other = ready(0)
        self.it.begin(other)
        self.it.expect_events(other)
        assert self.let_go == []


async def test_it_is_over_with_the_event_at_the_head_or_when_the_hub_says_so_once() -> None:
    begun: list[str] = []

    def run(work: Coroutine[object, object, None]) -> None:
        work.close()
        begun.append("gaps")

    client = Client(MemoryTransport(nobody), ME, "agent", turns=True)
    it = CatchUp(client, Inbox(ME), run, lambda held: None)
    behind = ready(2).model_copy(update={"head": 5})
    it.begin(behind)
    it.end()
    assert begun == [], "nothing is expected yet"
    it.expect_events(behind)
    it.note(4)
    assert begun == []
    it.note(5)
    it.end()
    it.note(9)
    assert begun == ["gaps"]
    it.begin(behind)
    it.expect_events(behind)
    it.end()
    it.end()
    assert begun == ["gaps"] * 2
    it.expect_events(behind)
    it.close()
    it.note(5)
    assert begun == ["gaps"] * 2
