"""Agents at work, as raw peers, for tests of what people may do about it."""

from __future__ import annotations

import asyncio
from typing import Any

from hubbub.network.auth import new_token
from tests.interaction.peers import Frame, Network, Peer, config

__all__ = [
    "DESK",
    "HandClock",
    "at_work",
    "begin",
    "beginning",
    "kinds",
    "let_in",
    "notices",
    "settled",
    "woken",
]


class HandClock:
    """Moved by hand: `wall` is what `now` tells."""

    def __init__(self) -> None:
        self.wall = 1_800_000_000.0
        self._stepped = 0.0

    def now(self) -> float:
        return self.wall

    def monotonic(self) -> float:
        return self.wall - self._stepped

    def set(self, by: float) -> None:
        """Somebody sets the clock: no time passes by that."""
        self.wall += by
        self._stepped += by


DESK = config(channels={"desk": {"members": "all"}})


async def at_work(network: Network) -> tuple[Peer, Peer, str]:
    """A person, an agent, and its turn that answers the person."""
    ann, calc = await network.join("ann"), await network.join("calc", "agent", turns=True)
    await ann.say("calc", "2+2?")
    return ann, calc, await begin(calc)


async def let_in(network: Network, name: str, kind: str = "human", **more: Any) -> Peer:
    """Somebody who has come in with a token."""
    token = new_token()
    network.hub.gateway.admission.add_token(name, token)
    return await network.join(name, kind, token=token, **more)


async def settled(network: Network) -> None:
    """All is committed, and nothing is being stopped any more."""
    await network.quiet()
    await asyncio.sleep(0)  # what the hub has just begun waits for its turn to stop things now
    async with network.hub.services.ending.exclusive():
        pass


async def woken(agent: Peer) -> Frame:
    """The next event that wakes the agent."""
    while True:
        event = await agent.event()
        if event.get("wake"):
            return event


def beginning(event: Frame) -> dict[str, Any]:
    """The start of the turn that an event asks for."""
    message = event["message"]
    return {
        "id": event["wake"]["turn"],
        "thread_id": message["thread_id"],
        "messages": [message["id"]],
    }


async def begin(agent: Peer) -> str:
    """Begin the turn that the next wake asks for; its id."""
    start = beginning(await woken(agent))
    await agent.call("begin_turn", start=start)
    return str(start["id"])


async def notices(network: Network, peer: Peer) -> list[Frame]:
    """The notices of the hub that have reached the peer by now."""
    await network.quiet()
    messages = [event["message"] for event in await peer.sync()]
    return [message for message in messages if message["sender_kind"] == "system"]


def kinds(messages: list[Frame]) -> list[str]:
    return [message["content"]["code"] for message in messages]
