"""`python -m benchmarks.postgres`: durable direct messages through `hubbub up` on SQLite and on a
Postgres that it starts, side by side in one run. The server's own CPU is not in the figures."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from benchmarks.bench import Bench
from benchmarks.hubs import hub, pair_names
from benchmarks.load import alternate
from benchmarks.scenarios.direct import SHAPES
from benchmarks.sides import hub_pairs
from benchmarks.stats import middle
from tests.postgres_server import PostgresServer, running_postgres

__all__ = ["main"]


async def _measure(bench: Bench, server: PostgresServer) -> None:
    for shape in SHAPES:
        pairs, url = shape.pairs, server.new_database(f"pairs{shape.pairs}")
        async with (
            hub(bench, pair_names(pairs)) as file,
            hub(bench, pair_names(pairs), url=url) as database,
            hub_pairs(file, pairs) as on_sqlite,
            hub_pairs(database, pairs) as on_postgres,
        ):
            rounds = await alternate(
                [on_sqlite, on_postgres], bench.pace(shape.window), bench.rounds
            )
        for name, found in zip(("SQLite", "Postgres"), rounds, strict=True):
            rate = middle(found, lambda i: i.rate)
            cpu = middle(found, lambda i: i.cpu_us)
            delay = middle(found, lambda i: i.p50_ms)
            figures = f"{rate:7,.0f}/s {cpu:6.1f} us CPU of the hub, round trip p50 {delay:6.1f} ms"
            bench.console.print(f"{shape!s:<28}{name:<10}{figures}")


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch, running_postgres() as server:
        bench = Bench(Path(scratch), Console(), quick="--quick" in sys.argv)
        asyncio.run(_measure(bench, server))


if __name__ == "__main__":
    main()
