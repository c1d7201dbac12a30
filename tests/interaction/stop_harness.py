"""Agents at work, as raw peers, for tests of stops and other interventions."""

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
    """A clock that tests move by hand: `now` returns `wall`."""

    def __init__(self) -> None:
        self.wall = 1_800_000_000.0
        self._stepped = 0.0

    def now(self) -> float:
        return self.wall

    def monotonic(self) -> float:
        return self.wall - self._stepped

    def set(self, by: float) -> None:
        """Set the wall clock, without letting time pass."""
        self.wall += by
        self._stepped += by


DESK = config(channels={"desk": {"members": "all"}})


async def at_work(network: Network) -> tuple[Peer, Peer, str]:
    """A person, an agent, and its turn that answers the person."""
    ann, calc = await network.join("ann"), await network.join("calc", "agent", turns=True)
    await ann.say("calc", "2+2?")
    return ann, calc, await begin(calc)


async def let_in(network: Network, name: str, kind: str = "human", **more: Any) -> Peer:
    """Join a participant with a token."""
    token = new_token()
    network.hub.gateway.admission.add_token(name, token)
    return await network.join(name, kind, token=token, **more)


async def settled(network: Network) -> None:
    """Wait until everything is committed and no stop is under way."""
    await network.quiet()
    await asyncio.sleep(0)  # a stop that has just begun now waits for the lock
    async with network.hub.services.ending.exclusive():
        pass


async def woken(agent: Peer) -> Frame:
    """The next event that wakes the agent."""
    while True:
        event = await agent.event()
        if event.get("wake"):
            return event


def beginning(event: Frame) -> dict[str, Any]:
    """The start of the turn that an event demands."""
    message = event["message"]
    return {
        "id": event["wake"]["turn"],
        "thread_id": message["thread_id"],
        "messages": [message["id"]],
    }


async def begin(agent: Peer) -> str:
    """Begin the turn of the next wake. Returns its id."""
    start = beginning(await woken(agent))
    await agent.call("begin_turn", start=start)
    return str(start["id"])


async def notices(network: Network, peer: Peer) -> list[Frame]:
    """The notices of the hub that have reached the peer so far."""
    await network.quiet()
    messages = [event["message"] for event in await peer.sync()]
    return [message for message in messages if message["sender_kind"] == "system"]


def kinds(messages: list[Frame]) -> list[str]:
    return [message["content"]["code"] for message in messages]
