"""The backplane of one node."""

from __future__ import annotations

from hubbub.network.backplane import Backplane, LocalBackplane
from hubbub.network.log import Entry
from hubbub.testing.network import LocalNetwork


class Recording(LocalBackplane):
    """Also keeps what was announced, as a second node would hear it."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[int] = []
        self.subscribe(self.hear)

    def hear(self, entry: Entry) -> None:
        self.heard.append(entry.seq)


async def test_every_commit_is_announced_once_and_in_order() -> None:
    backplane: Backplane = Recording()
    network = LocalNetwork()
    network.hub.backplane = backplane
    async with network:
        ann = await network.join("ann", "human")
        for text in ("one", "two", "three"):
            await ann.call("broadcast_text_message", text=text)
    assert isinstance(backplane, Recording)
    assert backplane.heard == [1, 2, 3]
