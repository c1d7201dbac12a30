"""`python -m benchmarks.gateways`: messages through gateways and directly, side by side in one run.

Direct messages, and broadcasts to many connections, each through one gateway. Both hubs keep their
log in SQLite; the load comes from this process and shares the machine with all of them.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from rich.console import Console

from benchmarks.bench import Bench
from benchmarks.hubs import hub, pair_names
from benchmarks.load import alternate
from benchmarks.scenarios.direct import SHAPES
from benchmarks.servers import Server, allow_many_sockets, start_gateway
from benchmarks.sides import hub_fan, hub_pairs
from benchmarks.stats import Interval, middle

__all__ = ["main"]

TOKEN = "a token for gateways"
FANS = ((100, 16), (1000, 4))
"""Receivers, messages in flight."""


class _Behind(Server):
    """A gateway as the load sees it; what is measured is the hub behind it, or both."""

    def __init__(self, gateway: Server, owner: Server, *, both: bool):
        self.port, self.pid = gateway.port, gateway.pid
        self._servers = (gateway, owner) if both else (owner,)

    def cpu_s(self) -> float:
        return sum(server.cpu_s() for server in self._servers)

    def waits(self) -> bool:
        return all(server.waits() for server in self._servers)


@asynccontextmanager
async def _three(bench: Bench, names: Sequence[str]) -> AsyncIterator[tuple[Server, ...]]:
    """A hub; a hub behind a gateway, of which the hub is measured; the same, of which both are."""
    async with AsyncExitStack() as stack:
        direct = await stack.enter_async_context(hub(bench, names))
        found = [direct]
        for both in (False, True):
            owner = await stack.enter_async_context(hub(bench, names, gateway_token=TOKEN))
            gateway = await stack.enter_async_context(start_gateway(owner.port, TOKEN))
            found.append(_Behind(gateway, owner, both=both))
        yield tuple(found)


async def _measure(bench: Bench) -> None:
    for shape in SHAPES:
        async with _three(bench, pair_names(shape.pairs)) as servers, AsyncExitStack() as stack:
            sides = [
                await stack.enter_async_context(hub_pairs(server, shape.pairs))
                for server in servers
            ]
            rounds = await alternate(sides, bench.pace(shape.window), bench.rounds)
        _print(bench, str(shape), rounds, 1)
    for receivers, window in FANS:
        names = ["a0", *(f"b{n}" for n in range(receivers))]
        async with _three(bench, names) as servers, AsyncExitStack() as stack:
            sides = [
                await stack.enter_async_context(hub_fan(server, receivers)) for server in servers
            ]
            rounds = await alternate(sides, bench.pace(window), bench.rounds)
        _print(bench, f"fan-out to {receivers}", rounds, receivers)


def _print(bench: Bench, what: str, rounds: Sequence[Sequence[Interval]], each: int) -> None:
    for name, found in zip(("direct", "gateway: hub", "gateway: both"), rounds, strict=True):
        rate = middle(found, lambda i: i.rate) * each
        cpu = middle(found, lambda i: i.cpu_us) / each
        delay = middle(found, lambda i: i.p50_ms)
        bench.console.print(
            f"{what:<28}{name:<15}{rate:8,.0f}/s {cpu:6.1f} us CPU, p50 {delay:6.1f} ms"
        )


def main() -> None:
    allow_many_sockets()
    with tempfile.TemporaryDirectory() as scratch:
        bench = Bench(Path(scratch), Console(), quick="--quick" in sys.argv)
        asyncio.run(_measure(bench))


if __name__ == "__main__":
    main()
