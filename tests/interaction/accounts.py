"""Networks with small budgets, and agents that record their spending."""

from __future__ import annotations

from typing import Any

from hubbub.config.models import NetworkFile
from tests.interaction.peers import Network, Peer, config

__all__ = ["Worker", "limited"]

# Sections of a config as YAML has them.
Section = dict[str, Any]


def limited(
    *,
    daily: Section | None = None,
    loop_limit: Section | None = None,
    breaker: Section | None = None,
    sections: Section | None = None,
    **budgets: Any,
) -> NetworkFile:
    """A network with these budgets, and by default a loop limit that is out of reach."""
    network: Section = {
        "budgets": {"hops": 1000, **budgets},
        "daily": daily or {},
        "breaker": breaker or {},
        "wake": {"loop_limit": loop_limit or {"wakes": 10_000}},
        "limits": {"calls_per_second": 10_000, "burst": 10_000},
    }
    return config(network=network, channels={"desk": {"members": "all"}}, **(sections or {}))


class Worker:
    """An agent that records a turn, a step at a time."""

    def __init__(self, peer: Peer, name: str, asked: Any):
        self.peer, self.asked, self.turn = peer, asked, f"{name}-{asked['id']}"

    @classmethod
    async def woken(cls, network: Network, name: str, person: Peer) -> Worker:
        """Join an agent and begin the turn that a person's message to it starts."""
        peer = await network.join(name, "agent", turns=True)
        worker = cls(peer, name, await person.say(name, "go"))
        await worker.begin()
        return worker

    @property
    def interaction(self) -> str:
        return f"i{self.asked['seq']}"

    async def begin(self) -> Any:
        woken_by, thread = self.asked["id"], self.asked["thread_id"]
        start = {"id": self.turn, "thread_id": thread, "messages": [woken_by]}
        return await self.peer.call("begin_turn", start=start)

    async def step(
        self, n: int, tokens: int, usd: float = 0.0, settles: tuple[str, ...] = ()
    ) -> Any:
        """Record a step; half of the tokens are input."""
        step = {
            "n": n,
            "tokens_in": tokens // 2,
            "tokens_out": tokens - tokens // 2,
            "cost_usd": usd,
        }
        return await self.peer.ask("record_step", turn=self.turn, step=step, settles=list(settles))

    async def reserve(self, key: str, tokens: int = 0, usd: float = 0.0) -> Any:
        return await self.peer.ask(
            "reserve_budget", turn=self.turn, key=key, tokens=tokens, usd=usd
        )

    async def end(self) -> Any:
        return await self.peer.call("end_turn", end={"id": self.turn, "outcome": "finished"})
