"""`python -m benchmarks.scale`: write docs/explanation/scale.md from the costs that were measured;
with `--measure`, measure them first (all, or the parts that are named)."""

from __future__ import annotations

import json
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks.bench import Bench
from benchmarks.report import machine, write_into
from benchmarks.scale.measure import PARTS, Costs
from benchmarks.scale.page import tables
from benchmarks.servers import allow_many_sockets
from hubbub.app.process import run_loop
from tests.postgres_server import running_postgres

__all__ = ["main", "write"]

COSTS = Path(__file__).with_name("costs.json")
PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "scale.md"


def main(
    measure: Annotated[bool, typer.Option(help="Measure, and keep the costs.")] = False,
    only: Annotated[list[str] | None, typer.Option(help=f"One of: {', '.join(PARTS)}.")] = None,
    quick: Annotated[bool, typer.Option(help="A tenth of the connections and networks.")] = False,
) -> None:
    """Measure what many machines cost, and write the page that is computed from it."""
    if measure:
        allow_many_sockets()
        for name in only or PARTS:
            with tempfile.TemporaryDirectory() as scratch, running_postgres() as server:
                bench = Bench(Path(scratch), Console(), quick)
                _keep(run_loop(PARTS[name](bench, server)))
    write(PAGE)


def write(page: Path) -> None:
    """The tables of the page, from the costs that are kept."""
    kept = json.loads(COSTS.read_text())
    made = kept["machine"]
    packages = ", ".join(f"{name} {version}" for name, version in made["packages"].items())
    made_on = (
        f"Measured on {made['date']}: {made['cores']} cores ({made['processor']}), which clients, "
        f"hubs and Postgres share with all else (load {made['load_average'][0]:.0f} at the end); "
        f"Python {made['python'].split()[0]}, SQLite {made['sqlite']}, Postgres 15, {packages}."
    )
    for name, table in tables(kept["costs"], made_on).items():
        write_into(page, table, name)


def _keep(costs: Costs) -> None:
    """Beside those of other parts."""
    kept = json.loads(COSTS.read_text()) if COSTS.exists() else {"costs": {}}
    kept["machine"] = {**machine(), "date": f"{datetime.now(UTC):%Y-%m-%d}"}
    kept["costs"] |= {name: float(f"{value:.3g}") for name, value in costs.items()}
    COSTS.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    typer.run(main)
